"""The code that the chapters of "Attention in Computer Vision" share: one module, one idea.

similarity   how well each key fits each query
normalise    from scores to weights
attention    the two of them and the values, in five lines
device       where to compute
data         pictures that come inside packages
patches      from pictures to tokens and back
features     a patch described in a few numbers
denoise      similarity weights at work
plots        weights and pictures to look at

Everywhere a row is a query: scores and weights have the shape (..., n_query, n_key), and
`output = weights @ value`. A mask is boolean, and True means "may be attended to".

Import what you need from its module: `from lib.attention import attention`.
"""

__version__ = "0.1.0"
