"""The code that the chapters of "Attention in Computer Vision" share: one module, one idea.

recurrent         one word at a time
recursive         a tree, folded two branches at a time
convolution       one window at a time, and how far it sees
similarity        how well each key fits each query
normalise         from scores to weights
attention         the two of them and the values, in five lines
masks             who may look at whom; pictures of different sizes in one batch
heads             several attentions side by side
positions         where a token is
hard_heads        a convolution as attention with fixed offsets
nonlocal_block    attention on a feature map, as a layer of a convolutional network
vit               a Vision Transformer
windows           attention within windows
streaming         attention in pieces, exact, without the n x n table
linear_attention  attention without softmax, in another order
loops             the same, pair by pair and row by row, and as the slides have it
device            where to compute
data              pictures that come inside packages
patches           from pictures to tokens and back
features          a patch described in a few numbers
denoise           similarity weights at work
pointer           what is on the card that has my colour?
twin              is there another card like me?
readers           networks that answer both, to compare
training          one plain loop
checkpoint        stop a training, and go on later with nothing lost
recipes           the digits: splits, and a Vision Transformer trained on them
look              where heads look: rollout, distance
faithful          whether a map explains an answer: deletion, insertion
measure           how much memory a function takes
plots             weights and pictures to look at
checks            of the exercises: `from lib import checks as check`

Everywhere a row is a query: scores and weights have the shape (..., n_query, n_key), and
`output = weights @ value`. A mask is boolean, and True means "may be attended to".

Import what you need from its module: `from lib.attention import attention`.
"""

__version__ = "0.1.0"
