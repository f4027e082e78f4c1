"""Peak memory of a training step beside PyTorch: forward and backward of ResNet-18 on one core.

    python tests/oracle/memory.py target/dist/flambeau [--batch N] [--size N]

Needs torch 2.6 and torchvision. Either side runs in a process of its own and reports the largest resident size; that of a
process that only loads the model is stated beside it, so that the difference is what the steps need: activations, gradients
and scratch buffers. PyTorch's number is the smaller one of eager Python and of TorchScript. `flambeau bench --grad` computes
gradients of the input and of all parameters, as PyTorch's process does. It maps parameters when they are first read, so they
count among its steps, and it caches prepacked weights, which no step changes here.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile


def peak(command):
    """Returns the largest resident size of a process, in MB."""
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, "w") as null:
            os.dup2(null.fileno(), 1)
        os.execvp(command[0], command)
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_maxrss / 1024


def step(path, batch, size, times, scripted):
    """The other process: runs training steps of the model."""
    import torch

    torch.set_num_threads(1)
    if scripted:
        model = torch.jit.load(path)
    else:
        import torchvision

        model = torchvision.models.resnet18()
    model.train()
    x = torch.rand(batch, 3, size, size, requires_grad=True)
    for _ in range(times):
        model.zero_grad(set_to_none=True)
        x.grad = None
        model(x).sum().backward()
    assert times == 0 or x.grad is not None
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def make(path):
    """Saves the model with random parameters."""
    import torch
    import torchvision

    torch.jit.script(torchvision.models.resnet18().train()).save(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flambeau")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--steps", nargs=3)
    parser.add_argument("--make")
    args = parser.parse_args()
    if args.make:
        return make(args.make)
    if args.steps:
        path, times, scripted = args.steps
        return step(path, args.batch, args.size, int(times), scripted == "scripted")
    # The largest size of a process is at least that of the one that starts it, so this one does not import PyTorch.
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "resnet18.pt")
        subprocess.run([sys.executable, __file__, args.flambeau, "--make", path], check=True)
        x = f"x=rand:f32[{args.batch},3,{args.size},{args.size}]"
        own = [sys.executable, __file__, args.flambeau, f"--batch={args.batch}", f"--size={args.size}", "--steps", path]
        ours = peak([args.flambeau, "bench", path, "--grad", "--threads", "1", "--min-time", "1", "-a", x])
        loaded = peak([args.flambeau, "info", path])
        print(f"ours                 peak {ours:8.0f} MB   loaded {loaded:6.0f} MB   steps {ours - loaded:8.0f} MB")
        best, least = None, None
        for kind in ["eager", "scripted"]:
            whole, base = peak([*own, "3", kind]), peak([*own, "0", kind])
            print(f"pytorch, {kind:<11} peak {whole:8.0f} MB   loaded {base:6.0f} MB   steps {whole - base:8.0f} MB")
            best, least = min(best or whole - base, whole - base), min(least or whole, whole)
        print(f"ours / theirs: peak {ours / least:.2f}, steps {(ours - loaded) / best:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
