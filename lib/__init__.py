"""The code that the chapters of "Attention in Computer Vision" share: one module, one idea.

recurrent    one word at a time
recursive    a tree, folded two branches at a time
convolution  one window at a time, and how far it sees
similarity   how well each key fits each query
normalise    from scores to weights
attention    the two of them and the values, in five lines
loops        the same, pair by pair and row by row, and as the slides have it
device       where to compute
data         pictures that come inside packages
patches      from pictures to tokens and back
features     a patch described in a few numbers
denoise      similarity weights at work
pointer      what is on the card that has my colour?
twin         is there another card like me?
readers      networks that answer both, to compare
training     one plain loop
plots        weights and pictures to look at

Everywhere a row is a query: scores and weights have the shape (..., n_query, n_key), and
`output = weights @ value`. A mask is boolean, and True means "may be attended to".

Import what you need from its module: `from lib.attention import attention`.
"""

__version__ = "0.1.0"
