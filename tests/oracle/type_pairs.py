"""Records PyTorch's answers about pairs of types into type_pairs.txt beside this file.

One line per type, `T <tab> as written below <tab> text in graphs <tab> annotation`; then one line per ordered pair, `i <tab> j <tab> subtype (0 or 1)
<tab> unified type or -`, with types named by their line number.
"""

import pathlib

import torch
from torch import _C

TYPES = """
Tensor Float(2,3) Float(2,*) Float(*,*) Long(2,3) Float(2,3,strides=[3,1],requires_grad=0,device=cpu) Float(2,3,requires_grad=1)
Float() Float(3) int float bool complex str Scalar NoneType Any Device Generator Storage Capsule AnyEnumType
int[] float[] bool[] Tensor[] Float(2,3)[] str[] Any[] int[][] int?[] Scalar[] Tensor[][] Union(int,str)[]
int? float? Tensor? Float(2,3)? Scalar? str? Any? int[]? Tensor[]? (int,str)? Dict(str,int)?
Union(int,str) Union(int,str,NoneType) Union(int,float) Union(Tensor,int) Union(Tensor,Scalar) Union(int,float,complex)
Union(int[],str) Union(Float(2,3),str) Union(Tensor[],Dict(str,int),NoneType) Union(bool,str,Device)
() (int) (int,str) (Tensor,int) (Float(2,3),int) (int?,str) (int,NoneType) (NoneType,str) (Any,Any) (int,(str,Tensor))
(Tensor,Tensor) (int[],Tensor[]) (Float(2,3)[],int)
Dict(str,int) Dict(str,Tensor) Dict(int,int) Dict(str,Float(2,3)) Dict(str,Any) Dict(str,int[]) Dict(str,Dict(str,int))
Future(int) Future(Tensor) Future(Float(2,3)) Future(int?) RRef(int) RRef(Tensor) Await(int) Await(Tensor)
""".split()


def main():
    header = ", ".join(f"%v{i} : {t}" for i, t in enumerate(TYPES))
    graph = _C.parse_ir(f"graph({header}):\n  return (%v0)\n")
    types = [value.type() for value in graph.inputs()]
    lines = [f"T\t{w}\t{t.str()}\t{t.annotation_str}" for w, t in zip(TYPES, types)]
    for i, a in enumerate(types):
        for j, b in enumerate(types):
            unified = _C.unify_type_list([a, b]) if can_unify(a, b) else None
            text = "-" if unified is None else unified.str()
            lines.append(f"{i}\t{j}\t{int(a.isSubtypeOf(b))}\t{text}")
    pathlib.Path(__file__).with_suffix(".txt").write_text("".join(line + "\n" for line in lines))


def can_unify(a, b):
    try:
        _C.unify_type_list([a, b])
        return True
    except RuntimeError:
        return False


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
