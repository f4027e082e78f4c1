"""Writes operator_errors.txt beside this file: the errors of PyTorch's operators for bad arguments.

    python tests/oracle/operator_errors.py > tests/oracle/operator_errors.txt

Needs torch 2.6. A line of the table has the call of an operator, and the values of each operand: the first is valid, the
others take its place one at a time. Operands with small letters are tensors, described by dtype, sizes and, after `=`, the
value of all elements, which is 1 otherwise (`i64 2x3=7`); the dtype is that of the value before if it is not stated, and `-`
stands for no dimensions. Capital letters are literals. Of the calls that raise, those with equal errors up to numbers and
dtypes are printed once: the call, the tensors, and the first line of the error. `tests/tests/programs/operator_errors.rs`
compares ours.
"""

import re
import warnings

import torch

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "f16": torch.float16,
    "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64, "c64": torch.complex64,
}

# Texts that come from a library, from an assertion, or from an overflow before the check.
ACCIDENTS = ("primitive", "memory descriptor", "INTERNAL ASSERT", "numel: integer multiplication overflow")

TYPES = r"\b(Float|Double|Half|Long|Int|Short|Byte|Bool|ComplexFloat|float|double|long int|int|bool)\b"

TABLE = r"""
# POOL
max_pool1d(a, K, S, P, D, False) | a: f32 2x3x8 / 3x8 / 8 / 0x3x8 / 2x0x8 / 2x3x0 / 1x2x3x8 / i64 2x3x8 / bool 2x3x8 /
    c64 2x3x8 | K: [2] / [0] / [-1] / EMPTY / [2, 2] / [9] | S: [1] / [0] / [-1] / EMPTY / [1, 1] | P: [0] / [2] /
    [-1] / EMPTY / [0, 0] | D: [1] / [0] / [-1] / EMPTY / [1, 1] / [9]
max_pool1d_with_indices(a, K, S, P, D, False) | a: f32 2x3x8 / 3x8 / 8 / 0x3x8 / 2x0x8 / 2x3x0 / 1x2x3x8 / i64 2x3x8 /
    bool 2x3x8 / c64 2x3x8 | K: [2] / [0] / [-1] / EMPTY / [2, 2] / [9] | S: [1] / [0] / [-1] / EMPTY / [1, 1] | P: [0] /
    [2] / [-1] / EMPTY / [0, 0] | D: [1] / [0] / [-1] / EMPTY / [1, 1] / [9]
max_pool2d(a, K, S, P, D, False) | a: f32 1x2x6x6 / 2x6x6 / 6x6 / 6 / 0x2x6x6 / 1x0x6x6 / 1x2x0x6 / 1x2x6x0 /
    0x1x6 / 1x1x2x6x6 / i64 1x2x6x6 / bool 1x2x6x6 / c64 1x2x6x6 | K: [2, 2] / [0, 2] / [2, -1] / EMPTY / [2] /
    [2, 2, 2] / [9, 9] / [2, 3] | S: [1, 1] / [0, 1] / [1, -1] / EMPTY / [1] / [1, 1, 1] | P: [0, 0] / [1, 2] / [2, 1] /
    [0, -1] / [-1, 0] / EMPTY / [0] / [0, 0, 0] | D: [1, 1] / [0, 1] / [1, -1] / EMPTY / [2] / [1, 1, 1] / [9, 9]
avg_pool1d(a, K, S, P) | a: f32 2x3x8 / 3x8 / 8 / 0x3x8 / 2x0x8 / 2x3x0 / 1x2x3x8 / i64 2x3x8 / bool 2x3x8 / c64 2x3x8
    | K: [2] / [0] / [-1] / EMPTY / [2, 2] / [9] | S: [1] / [0] / [-1] / EMPTY / [1, 1] | P: [0] / [2] / [-1] / EMPTY / [0, 0]
avg_pool2d(a, K, S, P, False, True, V) | a: f32 1x2x6x6 / 2x6x6 / 6x6 / 6 / 0x2x6x6 / 1x0x6x6 / 1x2x0x6 / 1x2x6x0 /
    0x1x6 / 1x1x2x6x6 / i64 1x2x6x6 / bool 1x2x6x6 / c64 1x2x6x6 | K: [2, 2] / [0, 2] / [2, -1] / EMPTY / [2] /
    [2, 2, 2] / [9, 9] / [2, 3] | S: [1, 1] / [0, 1] / [1, -1] / EMPTY / [1] / [1, 1, 1] | P: [0, 0] / [1, 2] / [2, 1] /
    [0, -1] / [-1, 0] / EMPTY / [0] / [0, 0, 0] | V: None / 0 / -1
avg_pool3d(a, K, S, P, False, True, V) | a: f32 1x2x4x4x4 / 2x4x4x4 / 4x4x4 / 4x4 / 0x2x4x4x4 / 1x0x4x4x4 /
    1x2x0x4x4 / 1x2x4x4x0 / i64 1x2x4x4x4 / bool 1x2x4x4x4 / f16 1x2x4x4x4 | K: [2, 2, 2] / [0, 2, 2] / [2, 2, -1] /
    EMPTY / [2] / [2, 2] / [9, 9, 9] / [2, 3, 2] | S: [1, 1, 1] / [0, 1, 1] / [1, 1, -1] / EMPTY / [1] / [1, 1]
    | P: [0, 0, 0] / [1, 2, 1] / [0, 0, -1] / EMPTY / [0] / [0, 0] | V: None / 0
adaptive_avg_pool1d(a, O) | a: f32 2x3x8 / 3x8 / 8 / 0x3x8 / 2x0x8 / 2x3x0 / 1x2x3x8 / i64 2x3x8 / bool 2x3x8 | O: [2] /
    [-1] / [0] / EMPTY / [1, 2] / [1]
adaptive_avg_pool2d(a, O) | a: f32 1x2x6x6 / 2x6x6 / 6x6 / 6 / 0x2x6x6 / 1x0x6x6 / 1x2x0x6 / 1x1x2x6x6 / i64 1x2x6x6 /
    bool 1x2x6x6 | O: [2, 2] / [-1, 0] / [0, 0] / EMPTY / [1] / [1, 2, 3] / [1, 1]
adaptive_max_pool1d(a, O) | a: f32 2x3x8 / 3x8 / 8 / 0x3x8 / 2x0x8 / 2x3x0 / 1x2x3x8 / i64 2x3x8 / bool 2x3x8 | O: [2] /
    [-1] / [0] / EMPTY / [1, 2]
adaptive_max_pool2d(a, O) | a: f32 1x2x6x6 / 2x6x6 / 6x6 / 6 / 0x2x6x6 / 1x0x6x6 / 1x2x0x6 / 1x1x2x6x6 / i64 1x2x6x6
    | O: [2, 2] / [-1, 0] / [0, 0] / EMPTY / [1] / [1, 2, 3]
fractional_max_pool2d(a, K, O, b) | a: f32 1x2x6x6 / 2x6x6 / 6x6 / 0x2x6x6 / 1x0x6x6 / 1x2x0x6 / i64 1x2x6x6 | K: [2, 2] /
    [0, 2] / [7, 2] / [2] / EMPTY | O: [2, 2] / [0, 2] / [-1, 2] / [7, 7] / [2] / EMPTY | b: f32 1x2x2=0 /
    f64 1x2x2=0 / 1x2x3=0 / 2x2x2=0 / 1x1x2=0 / 1x2=0
max_unpool2d(a, b, O) | a: f32 1x2x2x2 / 2x2x2 / 2x2 / 0x2x2x2 / 1x0x2x2 / 1x2x0x2 / i64 1x2x2x2 | b: i64 1x2x2x2 /
    2x2x2 / 1x2x2x3 / i32 1x2x2x2 / f32 1x2x2x2 / i64 1x2x2x2=99 | O: [4, 4] / [4] / EMPTY / [0, 4] / [-1, 4] / [4, 4, 4]
max_unpool3d(a, b, O, S, P) | a: f32 1x2x2x2x2 / 2x2x2x2 / 2x2x2 / 0x2x2x2x2 / 1x0x2x2x2 | b: i64 1x2x2x2x2 /
    2x2x2x2 / 1x2x2x2x3 / i32 1x2x2x2x2 / 1x2x2x2x2=999 | O: [4, 4, 4] / [4, 4] / EMPTY / [0, 4, 4] | S: [2, 2, 2] /
    [0, 2, 2] / [2, 2] / [-1, 2, 2] | P: [0, 0, 0] / [0, 0]
# CONV
conv1d(a, b, c, S, P, D, G) | a: f32 2x4x8 / 4x8 / 8 / 2x4x8x8 / 2x3x8 / 2x4x1 / 2x4x0 / 0x4x8 / i64 2x4x8 / f64 2x4x8 /
    bool 2x4x8 | b: f32 4x4x3 / 4x4 / 4x2x3 / 3x4x3 / 0x4x3 / 4x0x3 / 4x4x0 / 4x4x3x3 / f64 4x4x3 / i64 4x4x3 | c: f32 4 /
    3 / 4x1 / f64 4 / i64 4 | S: [1] / [0] / [-1] / EMPTY / [1, 1] | P: [0] / [-1] / EMPTY / [1, 1] | D: [1] / [0] /
    [-1] / EMPTY / [1, 1] | G: 1 / 2 / 0 / -1 / 3 / 5
conv2d(a, b, c, S, P, D, G) | a: f32 2x4x6x6 / 4x6x6 / 6x6 / 2x4x6x6x6 / 2x3x6x6 / 2x4x1x6 / 2x4x0x6 / 0x4x6x6 /
    i64 2x4x6x6 / f64 2x4x6x6 | b: f32 4x4x3x3 / 4x4x3 / 4x2x3x3 / 3x4x3x3 / 0x4x3x3 / 4x0x3x3 / 4x4x0x3 / f64 4x4x3x3
    | c: f32 4 / 3 / 4x1 / f64 4 | S: [1, 1] / [0, 1] / [1, -1] / EMPTY / [1] / [1, 1, 1] | P: [0, 0] / [-1, 0] / EMPTY /
    [1] / [1, 1, 1] / 'abc' / 'same' | D: [1, 1] / [0, 1] / [1, -1] / EMPTY / [1] / [1, 1, 1] | G: 1 / 2 / 0 / -1 / 3 / 5
conv2d(a, b, c, S, P, D, G) | a: f32 2x4x6x6 / 6x6 / 2x3x6x6 | b: f32 4x4x3x3 / 4x4x3 / 4x2x3x3 | c: f32 4 / 3
    | S: [1, 1] / [2, 2] / EMPTY / [1] | P: 'same' / 'valid' / 'abc' | D: [1, 1] / [0, 1] / EMPTY / [1] | G: 1 / 2 / 0
conv_transpose1d(a, b, c, S, P, O, G, D) | a: f32 2x4x8 / 4x8 / 8 / 2x4x8x8 / 2x3x8 / 2x4x0 / i64 2x4x8 / f64 2x4x8
    | b: f32 4x4x3 / 4x4 / 3x4x3 / 0x4x3 / 4x4x0 / f64 4x4x3 | c: f32 4 / 3 / 4x1 | S: [1] / [0] / [-1] / [1, 1]
    | P: [0] / [-1] / [9] / [1, 1] | O: [0] / [1] / [-1] / [0, 0] | G: 1 / 2 / 0 / -1 / 3 | D: [1] / [0] / [-1] / [1, 1]
conv_tbc(a, b, c, P) | a: f32 5x2x4 / 5x2 / 5x2x3 | b: f32 3x4x6 / 3x4 / 3x3x6 | c: f32 6 / 5 / 6x1 | P: 0 / -1
im2col(a, K, D, P, S) | a: f32 1x2x6x6 / 2x6x6 / 6x6 / 1x2x0x6 / 1x0x6x6 / 0x2x6x6 / i64 1x2x6x6 | K: [2, 2] / [0, 2] /
    [-1, 2] / [2] / EMPTY / [9, 9] | D: [1, 1] / [0, 1] / [-1, 1] / [1] / EMPTY | P: [0, 0] / [-1, 0] / [0] / EMPTY
    | S: [1, 1] / [0, 1] / [-1, 1] / [1] / EMPTY
col2im(a, O, K, D, P, S) | a: f32 1x8x25 / 8x25 / 25 / 1x7x25 / 1x8x24 / 0x8x25 / 1x0x25 / i64 1x8x25 | O: [6, 6] /
    [6] / EMPTY / [0, 6] / [-1, 6] | K: [2, 2] / [0, 2] / [2] / EMPTY | D: [1, 1] / [0, 1] / [1] | P: [0, 0] / [-1, 0] /
    [0] | S: [1, 1] / [0, 1] / [1]
pixel_unshuffle(a, N) | a: f32 1x4x2x2 / 4x2 / 1x3x3x2 / 1x3x2x3 | N: 2 / 0 / -1 / 3
upsample_nearest1d(a, O, None) | a: f32 1x2x4 / 2x4 / 1x2x4x4 / 1x0x4 / 0x2x4 / 1x2x0 | O: [8] / [0] / [-1] / EMPTY / [8, 8]
upsample_nearest2d(a, O) | a: f32 1x2x4x4 / 2x4x4 / 1x0x4x4 / 0x2x4x4 / 1x2x0x4 | O: [8, 8] / [0, 8] / [-1, 8] / EMPTY / [8]
# NORM
layer_norm(a, N, b, c, 1e-5, False) | a: f32 2x3x4 / 4 / - / 2x3 / i64 2x3x4 / f64 2x3x4 | N: [4] / [3, 4] / EMPTY / [3] /
    [2, 2, 2, 2] / [0] | b: f32 4 / 3 / 3x4 / f64 4 / i64 4 | c: f32 4 / 3 / 3x4
layer_norm(a, N) | a: f32 2x3x4 / 2x2x3 / 4 / - / i64 2x3x4 / bool 2x4 / c64 2x4 | N: [4] / [3, 4] / EMPTY / [3] /
    [2, 2] / [2, 2, 2, 2] / [0] / [-1]
gelu(a, approximate=M) | a: f32 3 / i64 3 / bool 3 | M: 'none' / 'abc'
elu(a) | a: i64 3 / bool 3
embedding(a, b) | a: f32 5x3 / 5 / - / 2x3x4 / i64 5x3 | b: i64 2 / i32 2 / f32 2 / bool 2 / i64 2=9 / i64 2=-1 / i16 2
one_hot(a, N) | a: i64 3 / f32 3 / i32 3 / 0 / i64 3=-1 / i64 3=5 | N: 4 / -1 / 0 / -2 / 1
# LOSS
smooth_l1_loss(a, b, R, B) | a: f32 3x4 / i64 3x4 | b: f32 3x4 / 5 / 2x4 / i64 3x4 | R: 1 / 3 | B: 1.0 / 0.0 / -1.0
huber_loss(a, b, R, B) | a: f32 3x4 / i64 3x4 | b: f32 3x4 / 5 / 2x4 / i64 3x4 | R: 1 / 3 | B: 1.0 / 0.0 / -1.0
kl_div(a, b, R) | a: f32 3x4 / i64 3x4 | b: f32 3x4 / 5 / i64 3x4 / c64 3x4 | R: 1 / 3
nll_loss(a, b, c, R, I) | a: f32 3x4 / 4 / - / 2x3x4 / 0x4 / i64 3x4 / c64 3x4 / f16 3x4 | b: i64 3 / 4 / - / 3x1 /
    f32 3 / i32 3 / u8 3 / i64 3=4 / i64 3=-1 | c: f32 4 / 3 / 4x1 / f64 4 / i64 4 | R: 1 / 0 / 2 / 3 | I: -100 / 1
nll_loss2d(a, b, c, R, I) | a: f32 2x4x3x3 / 2x4x3 / 4 / 2x4x0x3 / i64 2x4x3x3 | b: i64 2x3x3 / 2x3 / 2x3x4 / 3x3x3 /
    f32 2x3x3 / i64 2x3x3=4 / i64 2x3x3=-1 | c: f32 4 / 3 / 4x1 / f64 4 | R: 1 / 0 / 3 | I: -100
nll_loss_nd(a, b, c, R, I) | a: f32 3x4 / 4 / - / 2x3x4 / 3x4x5 / 3x4x5x5 / 3x4x5x5x5 | b: i64 3 / 4 / 3x5 / 3x5x5 /
    3x5x6 / 4x5x5x5 / 3x5x5x5 / f32 3 | c: f32 4 / 3 | R: 1 / 0 | I: -100
cross_entropy_loss(a, b, c, R, I, L) | a: f32 3x4 / 4 / - / 3x4x5 / 0x4 / i64 3x4 | b: i64 3 / 4 / - / 3x5 / f32 3x4 /
    f32 3 / f32 3x5 / i32 3 / i64 3=4 / i64 3=-1 / i64 3x4 | c: f32 4 / 3 / 4x1 / f64 4 | R: 1 / 0 / 3 | I: -100 / 1
    | L: 0.0 / 0.1 / -0.5 / 1.5
multi_margin_loss(a, b, P, M, c, R) | a: f32 3x4 / 4 / 0 / - / 2x3x4 / 0x4 / 3x0 / i64 3x4 | b: i64 3 / 4 / - / 3x1 /
    f32 3 / i32 3 / i64 3=4 / i64 3=-1 | P: 1 / 2 / 3 / 0 | M: 1.0 | c: f32 4 / 3 / 4x1 / f64 4 | R: 1 / 0 / 3
multilabel_margin_loss(a, b, R) | a: f32 3x4 / 4 / 0 / - / 2x3x4 / 0x4 / 3x0 / i64 3x4 | b: i64 3x4 / 4 / - / 3 /
    f32 3x4 / i64 3x4=4 / i64 3x4=-1 / 3x5 | R: 1 / 0 / 3
ctc_loss(a, b, I, T, B, R, False) | a: f32 5x2x4 / 5x4 / i64 5x2x4 / 0x2x4 / 5x0x4 | b: i64 2x3 / 6 / 2x3x1 / f32 2x3 /
    i64 3x3 / i64 2x1 / i32 2x3 | I: [5, 5] / [5] / [6, 5] / [-1, 5] / [0, 5] / EMPTY | T: [3, 3] / [3] / [4, 3] /
    [-1, 3] / [3, 2] | B: 0 / 4 / -1 | R: 1
# INDEX
gather(a, D, b) | a: f32 3x4 / - / 4 / 2x3x4 / 0x4 / 1x1 | D: 1 / 2 / -3 / 0 | b: i64 3x2 / i32 3x2 / f32 3x2 / bool 3x2 /
    - / 2 / 4x2 / 5x5 / i64 3x2=4 / i64 3x2=-1 / 0 / i64 2x2
scatter(a, D, b, c) | a: f32 3x4 / - / 4 / 2x3x4 / 0x4 / f64 3x4 / i64 3x4 | D: 1 / 2 / -3 / 0 | b: i64 3x2 / i32 3x2 /
    f32 3x2 / - / 2 / 4x2 / 2x5 / i64 3x2=4 / i64 3x2=-1 / 0 | c: f32 3x4 / 1x1 / 4 / 2x4 / f64 3x4 / -
scatter(a, D, b, V) | a: f32 3x4 / - / 4 / 2x3x4 | D: 1 / 2 / -3 | b: i64 3x2 / i32 3x2 / f32 3x2 / - / 2 / 4x2 /
    i64 3x2=4 / i64 3x2=-1 / 0 | V: 1.5
scatter(a, D, b, c, reduce=R) | a: f32 3x4 / - / 4 / bool 3x4 | D: 1 / 2 / 0 | b: i64 3x2 / i32 3x2 / f32 3x2 / 2 / 4x2 /
    i64 3x2=4 | c: f32 3x4 / 1x1 / 4 / f64 3x4 | R: 'add' / 'multiply' / 'abc' / 'sum'
scatter_reduce(a, D, b, c, R) | a: f32 3x4 / - / 4 / 2x3x4 / 0x4 / f64 3x4 / bool 3x4 | D: 1 / 2 / -3 / 0 | b: i64 3x2 /
    i32 3x2 / f32 3x2 / - / 2 / 4x2 / 2x5 / i64 3x2=4 / i64 3x2=-1 / 0 | c: f32 3x4 / 1x1 / 4 / 2x4 / f64 3x4 / -
    | R: 'sum' / 'amax' / 'abc' / 'add'
index_select(a, D, b) | a: f32 3x4 / - / 4 / 0x4 | D: 0 / 2 / -3 / 1 | b: i64 2 / i32 2 / f32 2 / bool 2 / - / 2x2 /
    i64 2=5 / i64 2=-1 / 0 / u8 2
index_add(a, D, b, c) | a: f32 3x4 / - / 4 / i64 3x4 | D: 0 / 2 / -3 | b: i64 2 / i32 2 / f32 2 / - / 2x2 / i64 2=5 /
    i64 2=-1 / 0 / 3 | c: f32 2x4 / 2x3 / 3x4 / 4 / - / f64 2x4 / 2x4x1
index_copy(a, D, b, c) | a: f32 3x4 / - / 4 / i64 3x4 | D: 0 / 2 / -3 | b: i64 2 / i32 2 / f32 2 / - / 2x2 / i64 2=5 /
    i64 2=-1 / 0 / 3 | c: f32 2x4 / 2x3 / 3x4 / 4 / - / f64 2x4 / 2x4x1
masked_fill(a, b, V) | a: f32 3x4 / 5 / i64 3x4 / bool 3x4 | b: bool 3x4 / 4 / 5 / f32 3x4 / u8 3x4 / i64 3x4 / 2x3x4
    | V: 1.0 / 1 / True
masked_fill(a, b, c) | a: f32 3x4 / i64 3x4 | b: bool 3x4 / 5 / f32 3x4 / u8 3x4 | c: f32 - / 1 / 3x4 / c64 -
masked_fill_(a, b, V) | a: f32 3x4 / 5 / i64 3x4 | b: bool 3x4 / 4 / 5 / f32 3x4 / u8 3x4 / 2x3x4 | V: 1.0
masked_scatter(a, b, c) | a: f32 3x4 / 5 / i64 3x4 | b: bool 3x4 / 4 / 5 / f32 3x4 / u8 3x4 / 2x3x4 | c: f32 3x4 / 5 /
    f64 3x4 / 0
masked_scatter_(a, b, c) | a: f32 3x4 / 5 / i64 3x4 | b: bool 3x4 / 4 / 5 / f32 3x4 / u8 3x4 / 2x3x4 | c: f32 3x4 / 5 /
    f64 3x4 / 0
masked_select(a, b) | a: f32 3x4 / 5 | b: bool 3x4 / 4 / 5 / f32 3x4 / u8 3x4 / 2x3x4
take(a, b) | a: f32 3x4 / 0 | b: i64 2 / i32 2 / f32 2 / i64 2=12 / i64 2=-13
put(a, b, c, False) | a: f32 3x4 / 0 | b: i64 2 / i32 2 / f32 2 / i64 2=12 / i64 2=-13 | c: f32 2 / 3 / f64 2
take_along_dim(a, b, D) | a: f32 3x4 / 4 | b: i64 3x2 / i32 3x2 / f32 3x2 / 2 / i64 3x2=4 / 2x2 | D: 1 / 2 / -3 / None
narrow_copy(a, D, S, L) | a: f32 3x4 / - | D: 0 / 2 / -3 | S: 0 / 4 / -4 / 3 | L: 1 / 4 / -1 / 0
kthvalue(a, K, D) | a: f32 3x4 / - / 0x4 / 3x0 / c64 3x4 / bool 3x4 | K: 1 / 0 / 5 / -1 / 4 | D: -1 / 2 / -3 / 0
quantile(a, b, D) | a: f32 3x4 / i64 3x4 / 0 / - / f64 3x4 / f16 3x4 | b: f32 2 / f64 2 / 2x2 / f32 2=2 / i64 2 | D: 0 /
    2 / None / -3
quantile(a, Q, D) | a: f32 3x4 / i64 3x4 / 0 | Q: 0.5 / 1.5 / -0.5 | D: 0 / 2 / None
# JOIN
cat(L, D) | L: [a, b] / [a] / [c, a] / [a, b, c] | a: f32 2x3 / - / 0 / 3 / 2x0 / i64 2x3 | b: f32 2x3 / 3x3 / 2x3x1 / - /
    0 / bool 2x3 | c: f32 2x3 / 2x4 / 4 / - | D: 0 / 1 / 2 / -3
cat(NONE_GIVEN, D) | D: 0 / 1
stack(NONE_GIVEN, D) | D: 0 / 5
hstack(NONE_GIVEN) |
vstack(NONE_GIVEN) |
dstack(NONE_GIVEN) |
column_stack(NONE_GIVEN) |
cartesian_prod(NONE_GIVEN) |
einsum(E, [a, b]) | E: 'ij,jk->ik' / 'ij,jk->il' / 'ij' / 'ij,jk,kl' / 'i,jk' / 'ij,jk->' / 'i1,jk' / 'ij,jk->ii' /
    'ij,kj' / '...ij,jk' / 'i..j,jk' | a: f32 2x3 / 3 | b: f32 3x4 / 2x4 / f64 3x4
stack([a, b], D) | a: f32 2x3 / - / 3 | b: f32 2x3 / 2x4 / 3 / f64 2x3 | D: 0 / 2 / 3 / -4
hstack([a, b]) | a: f32 2x3 / - / 3 | b: f32 2x3 / 3x3 / 3 / -
vstack([a, b]) | a: f32 2x3 / - / 3 | b: f32 2x3 / 2x4 / 3 / -
dstack([a, b]) | a: f32 2x3 / - / 3 | b: f32 2x3 / 2x4 / 3 / -
column_stack([a, b]) | a: f32 2x3 / - / 3 | b: f32 2x3 / 3x4 / 3 / -
cartesian_prod([a, b]) | a: f32 2 / - / 2x2 | b: f32 3 / 3x3 / f64 3
_chunk_cat([a, b], D, N) | a: f32 2x3 / 2x3x4 / - / f64 2x3 | b: f32 4 / 2x3 / 4x3 / 2x5x5 / 0x3 | D: 0 / 1 / -1 / -2
    | N: 3 / 0 / -1
split_with_sizes(a, N, D) | a: f32 4x3 / - | N: [2, 2] / [1, 2] / [5, -1] / EMPTY | D: 0 / 2 / -3
vsplit(a, N) | a: f32 4x3 / - / 4 | N: 2 / 3 / 0
# VIEW
permute(a, N) | a: f32 2x6 / - | N: [1, 0] / [0] / [0, 0] / [0, 2] / [0, 1, 2] / EMPTY / [-3, 0]
matrix_H(a) | a: f32 2x3x4 / 3 / -
mT(a) | a: f32 3 / -
expand(a, N) | a: f32 2x3 / - / 3 | N: [2, 3] / [3] / [4, 3] / [-1, 3] / [-1, 2, 3] / [2, -1] / [-2, 3] / EMPTY
repeat(a, N) | a: f32 2x3 / - | N: [1, 2] / [2] / [-1, 2] / EMPTY / [0, 1]
rot90(a, 1, N) | a: f32 2x3 / 3 / - | N: [0, 1] / [0] / [0, 0] / [0, 2] / [5, 0] / [0, 1, 2] / EMPTY / [0, -2]
tril(a) | a: f32 3 / - / c64 3
triu(a) | a: f32 3 / -
trace(a) | a: f32 3 / - / 2x3x4 / bool 2x2
tril_indices(N, M) | N: 2 / -1 | M: 2 / -1
view_as_complex(a) | a: f32 3 / - / 3x2 / i64 3x2 / 2x3 / bf16 3x2
complex(a, b) | a: f32 3 / f64 3 / i64 3 / bf16 3 / c64 3 / 4 | b: f32 3 / f64 3 / i64 3 / i32 3
vander(a, N) | a: f32 3 / 2x2 / - | N: None / 2 / -1
# CREATE
arange(S, E, T) | S: 0 / 5 / 0.5 / inf / nan | E: 3 / -3 / 1.5 / inf | T: 1 / 0 / -1 / 0.5 / nan
range(S, E, T) | S: 0 / 5 / 0.5 / inf | E: 3 / -3 / inf | T: 1 / 0 / -1 / 0.5
arange(E) | E: 3 / -1 / inf / nan / -0.5
linspace(S, E, N) | S: 0 / 1.5 | E: 1 | N: 3 / -1 / 0
linspace(a, b, N) | a: f32 - / 2 / i64 2 | b: f32 - / 2 / 2x2 | N: 3 / -1
linspace(a, E, N) | a: f32 - / 2 | E: 1 | N: 3 / -1
linspace(S, a, N) | a: f32 - / 2 | S: 1 | N: 3 / -1
logspace(a, b, N, 10.0) | a: f32 - / 2 / i64 2 | b: f32 - / 2 / 2x2 | N: 3 / -1
eye(N) | N: 3 / -1
eye(N, M) | N: 0 / 3 / -1 | M: 2 / -3
hann_window(N, dtype=T) | N: 3 / -1 | T: None / 4 / 9
# REDUCE
sum(a, D, False, dtype=T) | a: f32 2x3 / - / bool 2x3 | D: [0] / [2] / [-3] / [0, 0] / [0, -2] / EMPTY / [0, 1, 2]
    | T: None / 4
mean(a, D, False, dtype=T) | a: f32 2x3 / - / i64 2x3 / bool 2x3 | D: [0] / [2] / [-3] / [0, 0] / EMPTY | T: None / 4 / 11 / 7
mean(a, dtype=T) | a: f32 2x3 / - / i64 2x3 / bool 2x3 | T: None / 4 / 11
var_mean(a, D) | a: f32 2x3 / i64 2x3 | D: [0] / [2] / [0, 0]
amax(a, D) | a: f32 2x3 / - / 0x3 / 5x0x5 / c64 2x3 / bool 2x3 / 0 | D: [0] / [1] / [2] / [-3] / [0, 0] / EMPTY
amin(a, D) | a: f32 2x3 / - / 0x3 / 5x0x5 / c64 2x3 / 0 | D: [0] / [1] / [2] / [-3] / [0, 0] / EMPTY
aminmax(a, dim=D) | a: f32 2x3 / - / 0x3 / 2x0 / 0 / c64 2x3 | D: 0 / 1 / 2 / -3 / None
max(a, D) | a: f32 2x3 / - / 0x3 / 2x0 / 0 / c64 2x3 / bool 2x3 | D: 0 / 1 / 2 / -3
max(a) | a: f32 0 / 2x0 / c64 3
# LINALG
linalg_inv_ex(a, check_errors=C) | a: f32 3x3=0 / 3 / 2x3 / i64 3x3 | C: True / False
linalg_solve(a, b) | a: f32 3x3 / 3 / - / 2x3 / i64 3x3 / f64 3x3 / 3x3=0 | b: f32 3 / 4 / 3x2 / 4x2 / - / f64 3 / i64 3
linalg_lstsq(a, b, driver=D) | a: f32 4x3 / 3 / - / 3x4 / i64 4x3 / f64 4x3 / f16 4x3 | b: f32 4x2 / 4 / - / 3x2 / 5x2 /
    f64 4x2 / i64 4x2 | D: None / 'abc'
linalg_householder_product(a, b) | a: f32 4x3 / 3 / 3x4 / i64 4x3 | b: f32 3 / 4 / 2x3 / f64 3 / - / i64 3
ormqr(a, b, c, L, T) | a: f32 4x3 / 3 / - / 3x4 / i64 4x3 / f64 4x3 / 2x4x3 / 4x0 / 5x0 | b: f32 3 / 4 / 2x3 / f64 3 / - /
    5 | c: f32 4x2 / 2x4 / 4 / - / 3x2 / f64 4x2 / i64 4x2 / 4x4 | L: True / False | T: False / True
# POINT
neg(a) | a: bool 2
bitwise_not(a) | a: f32 3 / c64 3
lerp(a, b, c) | a: f32 3 / i64 3 / f64 3 | b: f32 3 / 4 / f64 3 | c: f32 3 / f64 3 / 4
lerp(a, b, W) | a: f32 3 / i64 3 / f64 3 | b: f32 3 / 4 / f64 3 | W: 0.5
scaled_dot_product_attention(a, b, c, d, P, I) | a: f32 2x3x4 / 3x4 / 4 / f64 2x3x4 / 2x3x5 | b: f32 2x5x4 / 5x4 / 4 /
    3x5x4 / f64 2x5x4 | c: f32 2x5x4 / 5x4 / 4 | d: f32 3x5 / 3x4 / i64 3x5 / bool 3x5 / f64 3x5 / 5 | P: 0.0 / 1.5 /
    -0.5 | I: False / True
lstm_cell(a, [b, c], d, e) | a: f32 2x3 / 3 / 2x4 | b: f32 2x5 / 3x5 / 2x4 / 5 | c: f32 2x5 / 2x4 / 3x5 | d: f32 20x3 /
    20x4 / 19x3 | e: f32 20x5 / 20x4 / 19x5
"""


def described(values):
    """The descriptions of tensors, each with its dtype."""
    dtype = None
    for value in values:
        parts = value.split()
        if parts[0] in DTYPES:
            dtype = parts.pop(0)
        sizes = parts[0].replace("-", "", 1) if parts and parts[0].split("=")[0] == "-" else "".join(parts)
        yield f"{dtype} {sizes}".strip()


def tensor(text):
    text, _, value = text.partition("=")
    dtype, _, sizes = text.strip().partition(" ")
    return torch.full([int(n) for n in sizes.split("x") if n], float(value or 1)).to(DTYPES[dtype])


def cases(line):
    """Calls, and the descriptions of their tensors."""
    call, *operands = [part.strip() for part in line.split("|")]
    values = {}
    for operand in operands:
        if operand:
            name, _, given = operand.partition(":")
            given = [value.strip() for value in given.split(" / ")]
            values[name] = list(described(given)) if name.islower() else given
    first = {name: given[0] for name, given in values.items()}
    for name, given in values.items() or [("", [""])]:
        for value in given:
            chosen = {**first, name: value}
            text = re.sub(r"\b([A-Z])\b(?![='])", lambda found: chosen[found[1]], call)
            text = text.replace("NONE_GIVEN", "torch.jit.annotate(List[Tensor], [])")
            text = text.replace("EMPTY", "torch.jit.annotate(List[int], [])")
            yield re.sub(r"\b(inf|nan)\b", r"float('\1')", text), [chosen[n] for n in sorted(chosen) if n.islower()]


def error(call, tensors):
    """The first line of the error of a call, or None."""
    source = f"def f({', '.join('abcdef'[: len(tensors)])}):\n    return torch.ops.aten.{call}\n"
    function = torch.jit.CompilationUnit(source).f
    try:
        function(*map(tensor, tensors))
    except Exception as raised:
        text = str(raised).split("<--- HERE")[-1].strip()
        return re.sub(r"^\w+Error: ", "", text).strip().splitlines()[0]
    return None


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seen = set()
    for line in TABLE.strip().replace("\n    ", " ").splitlines():
        for call, tensors in cases(line) if not line.startswith("#") else ():
            found = error(call, tensors)
            if found is None or any(accident in found for accident in ACCIDENTS):
                continue
            kind = re.sub(r"[\d.x\[\], -]+", "#", re.sub(TYPES, "T", found))
            if kind not in seen:
                seen.add(kind)
                print(call, "; ".join(tensors), found, sep="\t")


main()
