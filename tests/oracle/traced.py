"""Compares traces of this package with PyTorch's, of the models of a recorded suite.

    python tests/oracle/traced.py SUITE [NAME ...] [--verbose]

SUITE is a folder with recorded cases, of which those with an archive are read. Each program is built as a module of Python, from the
libraries that define it, with the tensors of the archive; it is traced by `torch.jit.trace` and by `flambeau.jit.trace`. A program
whose module is not known here, or whose library is not installed, is the archive's own module within one of Python. Compared are the
nodes in order with their operands, of the graphs with all calls inlined and without tuples that only pass results, and the results for
the inputs of the case. Prints one line per case and
the numbers of those that agree. Cases that PyTorch cannot trace are counted apart.

Needs torch; torchvision, torchaudio, timm and transformers for their models.
"""

import argparse
import collections
import contextlib
import difflib
import json
import pathlib
import sys
import warnings

import torch
from common import value_of
from torch import nn
from torch.utils import _pytree as pytree

from flambeau import jit

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python/tests"))
from traces import calls, kinds  # noqa: E402

# Registers operators of torchvision such as `nms`, which files name.
with contextlib.suppress(ImportError):
    import torchvision  # noqa: F401


class Recurrent(nn.Module):
    def __init__(self, r):
        super().__init__()
        self.r = r

    def forward(self, x):
        return self.r(x)


class LstmAndHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.o = nn.LSTM(3, 4, 2), nn.Linear(4, 2)

    def forward(self, x):
        y, (h, c) = self.l(x)
        return self.o(y), h, c


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.u, self.b = (nn.Parameter(torch.zeros(s)) for s in ((20, 4), (20, 5), (20,)))

    def forward(self, x, state):
        h, c = state
        i, f, z, o = (x @ self.w.t() + h @ self.u.t() + self.b).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * z.tanh()
        h = o.sigmoid() * c.tanh()
        return h, (h, c)


class CustomLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()

    def forward(self, x, state):
        out = []
        for t in x.unbind(0):
            y, state = self.cell(t, state)
            out.append(y)
        return torch.stack(out), state


def lstm_cell(x, h, c, w_ih, w_hh, b_ih, b_hh):
    gates = torch.mm(x, w_ih.t()) + torch.mm(h, w_hh.t()) + b_ih + b_hh
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def vision(name, **options):
    def make():
        from torchvision import models

        return models.get_model(name, weights=None, **options)

    return make


def detector(name, ratios, **options):
    def make():
        from torchvision.models import detection
        from torchvision.models.detection.anchor_utils import AnchorGenerator
        from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

        layers = {"backbone_name": "resnet18", "weights": None, "trainable_layers": 5, "returned_layers": [2, 3, 4]}
        anchors = AnchorGenerator(tuple((size,) for size in (8, 16, 32, 64)), (ratios,) * 4)
        key = "rpn_anchor_generator" if "RCNN" in name else "anchor_generator"
        sizes = {"min_size": 64, "max_size": 96, key: anchors}
        return getattr(detection, name)(resnet_fpn_backbone(**layers), **sizes, **options)

    return make


def keypointrcnn():
    from torchvision.models.detection import faster_rcnn, keypoint_rcnn
    from torchvision.ops import MultiScaleRoIAlign

    return detector(
        "KeypointRCNN", (0.5, 1.0, 2.0), box_roi_pool=MultiScaleRoIAlign(["0", "1", "2"], 3, 2),
        box_head=faster_rcnn.TwoMLPHead(144, 32), box_predictor=faster_rcnn.FastRCNNPredictor(32, 2),
        keypoint_head=keypoint_rcnn.KeypointRCNNHeads(16, (8, 8)), keypoint_predictor=keypoint_rcnn.KeypointRCNNPredictor(8, 5),
    )()  # fmt: skip


def googlenet():
    from torchvision.models import GoogLeNet

    return GoogLeNet(aux_logits=False, init_weights=False, transform_input=True)


def swin3d():
    from torchvision.models.video.swin_transformer import SwinTransformer3d

    return SwinTransformer3d([2, 4, 4], 16, [1, 1], [2, 4], [2, 4, 4], num_classes=10)


def audio(name, *args, **options):
    def make():
        from torchaudio import models

        return getattr(models, name)(*args, **options)

    return make


_SPEECH = {
    "extractor_mode": "group_norm", "extractor_conv_layer_config": [(16, 10, 5), (16, 3, 2), (16, 2, 2)], "extractor_conv_bias": False,
    "encoder_embed_dim": 24, "encoder_projection_dropout": 0.1, "encoder_pos_conv_kernel": 8, "encoder_pos_conv_groups": 4,
    "encoder_num_layers": 2, "encoder_num_heads": 4, "encoder_attention_dropout": 0.1, "encoder_ff_interm_features": 48,
    "encoder_ff_interm_dropout": 0.1, "encoder_dropout": 0.1, "encoder_layer_norm_first": False, "encoder_layer_drop": 0.1,
}  # fmt: skip


def wavlm():
    options = {**_SPEECH, "extractor_conv_layer_config": _SPEECH["extractor_conv_layer_config"][:2]}
    return audio("wavlm_model", **options, encoder_num_buckets=20, encoder_max_distance=40, aux_num_out=None)()


def melspectrogram():
    from torchaudio import transforms

    return nn.Sequential(transforms.MelSpectrogram(16000, n_fft=64, n_mels=8), transforms.AmplitudeToDB(top_db=80.0))


def timm_model(module, name, **options):
    def make():
        import importlib

        return getattr(importlib.import_module(f"timm.models.{module}"), name)(**options)

    return make


def resmlp():
    from timm.models.mlp_mixer import Affine, MlpMixer, ResBlock

    return MlpMixer(10, 32, patch_size=8, num_blocks=2, embed_dim=24, mlp_ratio=4, block_layer=ResBlock, norm_layer=Affine)


def gpt2():
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(vocab_size=50, n_positions=32, n_embd=32, n_layer=2, n_head=4, torchscript=True)
    config._attn_implementation = "eager"
    return GPT2Model(config)


def deberta():
    from transformers import DebertaV2Config, DebertaV2Model

    return DebertaV2Model(DebertaV2Config(
        vocab_size=50, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64, max_position_embeddings=32,
        relative_attention=True, pos_att_type=["c2p", "p2c"], torchscript=True,
    ))  # fmt: skip


def encoder_layer():
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


MODULES = {
    "nn_gru": lambda: Recurrent(nn.GRU(4, 6, 2)),
    "nn_rnn_tanh": lambda: Recurrent(nn.RNN(4, 6, 2)),
    "nn_rnn_relu": lambda: Recurrent(nn.RNN(4, 6, 1, "relu")),
    "nn_lstm_batch_first_proj": lambda: Recurrent(nn.LSTM(4, 6, batch_first=True, proj_size=3)),
    "nn_lstm_grad": lambda: LstmAndHead().double(),
    "nn_lstm_custom_loop": CustomLoop,
    "nn_lstm_cell_fn": lambda: lstm_cell,
    "nn_transformer_encoder": lambda: nn.TransformerEncoder(encoder_layer(), 2),
    "nn_transformer_decoder": lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(16, 4, 32), 2),
    "nn_multihead_attention_kdim": lambda: nn.MultiheadAttention(16, 4, add_bias_kv=True, kdim=8, vdim=6),
    "tv_googlenet": googlenet,
    "tv_resnet50": vision("resnet50"),
    "tv_r2plus1d_18": vision("r2plus1d_18"),
    "tv_swin3d": swin3d,
    "tv_keypointrcnn": keypointrcnn,
    "tv_retinanet": detector("RetinaNet", (0.5, 1.0, 2.0), num_classes=4),
    "tv_fcos": detector("FCOS", (1.0,), num_classes=4),
    "ta_wav2vec2": lambda: FirstResult(audio("wav2vec2_model", **_SPEECH, aux_num_out=12)()),
    "ta_wavlm": lambda: FirstResult(wavlm()),
    "ta_emformer": audio("Emformer", 16, 4, 32, 2, 4, right_context_length=1),
    "ta_melspectrogram": melspectrogram,
    "timm_convmixer": timm_model("convmixer", "ConvMixer", dim=24, depth=2, kernel_size=5, patch_size=4, num_classes=10),
    "timm_deit_dist": timm_model(
        "deit", "VisionTransformerDistilled", img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4, num_classes=10
    ),
    "timm_mobilenetv4": timm_model("mobilenetv3", "mobilenetv4_conv_small", num_classes=16),
    "timm_resmlp": resmlp,
    "hf_gpt2_cache_outputs": gpt2,
    "hf_deberta": deberta,
}  # fmt: skip


class FirstResult(nn.Module):
    """A module whose other results traces cannot have."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *args):
        return self.inner(*args)[0]


class OfArchive(nn.Module):
    """The module of an archive as a part of one of Python."""

    def __init__(self, loaded):
        super().__init__()
        self.loaded = loaded

    def forward(self, *args):
        return self.loaded(*args)


def fitted(module, state):
    """Gives a module the tensors of a state that has the same names, whatever their sizes: suites have narrow models."""
    if not isinstance(module, nn.Module):
        return module
    for path, part in module.named_modules():
        for name, own in [*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)]:
            given = state.get(f"{path}.{name}".removeprefix("inner.").removeprefix("."))
            if given is not None:
                own.data = given.detach().clone()
        if isinstance(part, nn.modules.conv._ConvNd) and part.groups > 1 and part.groups == part.in_channels:
            part.groups = part.weight.shape[0]
    return module.eval().requires_grad_(False)


def built(case, suite):
    """Returns the module of a case, and how it was made."""
    loaded = torch.jit.load(str(suite / case["archive"]))
    make, reason = MODULES.get(case["model"]), "unknown"
    if make is not None:
        try:
            return fitted(make(), loaded.state_dict()), "built"
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    return OfArchive(loaded).eval().requires_grad_(False), f"of the archive ({reason})"


def differ(found, wanted):
    found, wanted = pytree.tree_leaves(found), pytree.tree_leaves(wanted)
    if len(found) != len(wanted):
        return f"{len(found)} results for {len(wanted)}"
    for ours, theirs in zip(found, wanted, strict=True):
        if isinstance(theirs, torch.Tensor):
            if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
                return f"{ours.dtype} {list(ours.shape)} for {theirs.dtype} {list(theirs.shape)}"
            if not torch.allclose(ours, theirs, rtol=1e-4, atol=1e-4, equal_nan=True):
                return f"elements differ by {(ours.double() - theirs.double()).abs().max().item()}"
        elif ours != theirs:
            return f"{ours} for {theirs}"
    return None


def compared(case, suite, verbose):
    """Returns the outcome of a case, and what it is about."""
    module, made = built(case, suite)
    inputs = tuple(value_of(value) for value in case["inputs"])
    try:
        theirs = torch.jit.trace(module, inputs, check_trace=False, strict=False)
        wanted = theirs(*inputs)
    except Exception as error:
        return "not traceable", f"{made}; {type(error).__name__}: {' '.join(str(error).split())[-200:]}"
    try:
        ours = jit.trace(module, inputs, check_trace=False, strict=False)
        found = ours(*inputs)
    except Exception as error:
        return "failed", f"{made}; {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    own, its_graph = ours.inlined_graph, theirs.inlined_graph
    # PyTorch inlines the optimized bodies of functions, in which branches on constants are decided.
    own.run("constant_propagation{immutable},dce,lower_all_tuples")
    torch._C._jit_pass_constant_propagation_immutable_types(its_graph)
    torch._C._jit_pass_dce(its_graph)
    torch._C._jit_pass_lower_all_tuples(its_graph)
    results = differ(found, wanted)
    if results is not None:
        return "other results", f"{made}; {results}"
    mine, its = calls(own), calls(its_graph)
    outcome = "equal" if mine == its else "other operands"
    if mine != its and kinds(own) != kinds(its_graph):
        mine, its = kinds(own), kinds(its_graph)
        outcome = "other order" if sorted(mine) == sorted(its) else "other operators"
    if outcome == "equal":
        return outcome, f"{made}; {len(its)} operators"
    if verbose:
        print("\n".join(difflib.unified_diff(its, mine, "PyTorch", "Flambeau", lineterm="", n=2)))
    more, fewer = (collections.Counter(mine), collections.Counter(its)), (collections.Counter(its), collections.Counter(mine))
    parts = [", ".join(f"{kind} {n}" for kind, n in (a - b).items()) or "none" for a, b in (more, fewer)]
    return outcome, f"{made}; more: {parts[0]}; fewer: {parts[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="only models whose names contain one of these")
    parser.add_argument("--verbose", action="store_true", help="print the difference of graphs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    counts = collections.Counter()
    for line in (options.suite / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        if "archive" not in case or options.names and not any(name in case["model"] for name in options.names):
            continue
        outcome, about = compared(case, options.suite, options.verbose)
        counts[outcome] += 1
        print(f"{case['model']:30} {outcome:20} {about}", flush=True)
    print(", ".join(f"{n} {outcome}" for outcome, n in counts.most_common()))


if __name__ == "__main__":
    main()
