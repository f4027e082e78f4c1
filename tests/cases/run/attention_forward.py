# test run
# Attention of `torch.nn.functional`, written with operators: projections, masks, added keys, weights; with PyTorch's results.
def waves(n: int, m: int) -> Tensor:
    return torch.sin(torch.arange(n * m, dtype=torch.float64)).view(n, m)

def attend(x: Tensor, mask: Optional[Tensor], padding: Optional[Tensor], weights: bool, average: bool, more: bool):
    added: Optional[Tensor] = waves(1, 4).view(1, 1, 4) if more else None
    return F.multi_head_attention_forward(x, x, x, 4, 2, waves(12, 4), waves(12, 1).view(12), added, added, more, 0.0, waves(4, 4), None, key_padding_mask=padding, need_weights=weights, attn_mask=mask, average_attn_weights=average)

def apart(x: Tensor, y: Tensor):
    return F.multi_head_attention_forward(x, y, y, 4, 2, None, None, None, None, False, 0.0, waves(4, 4), None, False, None, False, None, True, waves(4, 4), waves(4, 3), waves(4, 3))[0]

def given(x: Tensor):
    return F.multi_head_attention_forward(x, x, x, 4, 2, waves(12, 4), None, None, None, False, 0.0, waves(4, 4), None, static_k=waves(2, 6).view(2, 3, 2), static_v=waves(2, 6).view(2, 3, 2))[0]

def hinted(x: Tensor, mask: Optional[Tensor]):
    return F.multi_head_attention_forward(x, x, x, 4, 2, waves(12, 4), None, None, None, False, 0.0, waves(4, 4), None, need_weights=False, attn_mask=mask, is_causal=True)[0]

# run: attend(tensor([[0.5, -1.0, 0.25, 2.0], [1.5, 0.0, -0.5, 1.0]], f64), None, None, True, True, False) == (tensor([[-0.3379479503331561, -1.4835709738594258, 2.2774013566564166, -1.4936467639897781], [-1.4876479684144577, -1.3614192955081186, 3.2674140440734867, -2.910029397749503]], f64), tensor([[0.037316642301038636, 0.9626833576989613], [0.6059399368967551, 0.39406006310324493]], f64))
# run: attend(tensor([[0.5, -1.0, 0.25, 2.0], [1.5, 0.0, -0.5, 1.0]], f64), None, None, True, False, True) == (tensor([[0.4795627091669406, -1.3661831189200346, 1.3064310520603275, -0.34169752763470584], [-0.4297593095216309, -0.9223186748656411, 1.6354947459802431, -1.2157427404662373]], f64), tensor([[[0.0004918766314131235, 0.08087369900942433, 0.7625620011693672, 0.15607242318979547], [0.08915798814774863, 0.2707766490455951, 0.3675660745136392, 0.27249928829301695]], [[0.05415212372527602, 0.7353753424189278, 0.07286658252161762, 0.1376059513341784], [0.562053440302253, 0.020884436568671432, 0.30652979436300654, 0.1105323287660691]]], f64))
# run: attend(tensor([[0.5, -1.0, 0.25, 2.0], [1.5, 0.0, -0.5, 1.0]], f64), tensor([[False, True], [False, False]]), None, True, True, False) == (tensor([[0.22944322083527102, -2.4761912024570227, 3.0076499462139883, -1.4556711998100949], [-1.4876479684144577, -1.3614192955081186, 3.2674140440734867, -2.910029397749503]], f64), tensor([[1.0, 0.0], [0.6059399368967551, 0.39406006310324493]], f64))
# run: attend(tensor([[0.5, -1.0, 0.25, 2.0], [1.5, 0.0, -0.5, 1.0]], f64), tensor([[0.5, -0.5], [1.0, 0.0]], f64), tensor([False, True]), True, True, True) == (tensor([[0.2213467562407685, -0.819703579603851, 0.8502412753734818, -0.2918059920817849], [-0.4925713113197996, -1.2292721473032018, 2.0995831060999035, -1.5154860602472182]], f64), tensor([[0.14936591286240833, 0.0, 0.5362297091586822, 0.3144043779789096], [0.5301042088486209, 0.0, 0.28707538767895135, 0.18282040347242773]], f64))
# run: attend(tensor([[0.5, -1.0, 0.25, 2.0], [1.5, 0.0, -0.5, 1.0]], f64), tensor([[0.5, -0.5], [1.0, 0.0]], f64), None, False, True, False) == (tensor([[-0.5026550817894966, -1.445634331078969, 2.3925143990119024, -1.6820692183979673], [-0.9974107287817953, -1.687914344376972, 3.2039996163141824, -2.500633476529479]], f64), None)
# run: attend(tensor([[0.5, -1.0, 0.25, 2.0], [1.5, 0.0, -0.5, 1.0]], f64), tensor([[0, 1], [0, 0]]), None, True, True, False) raises "AssertionError: only bool and floating types of attn_mask are supported"
# run: attend(tensor([[[0.5, -1.0, 0.25, 2.0]], [[1.5, 0.0, -0.5, 1.0]]], f64), None, tensor([[True, False]]), False, True, False) == (tensor([[[-0.22031197143425438, -1.5117151769174546, 2.196557935343856, -1.3598169876722603]], [[-0.22031197143425438, -1.5117151769174546, 2.196557935343856, -1.3598169876722603]]], f64), None)
# run: apart(tensor([[0.5, -1.0, 0.25, 2.0]], f64), tensor([[1.0, 2.0, 0.5], [-1.0, 0.0, 1.0]], f64)) == tensor([[0.008085723567102132, -0.925306894505433, 1.2015561743020888, -0.6454721623782597]], f64)
# run: given(tensor([[0.5, -1.0, 0.25, 2.0]], f64)) == tensor([[0.22967916174826905, -0.48199356826403883, 0.4004248806378886, -0.04147676946401935]], f64)
# run: hinted(tensor([[0.5, -1.0, 0.25, 2.0], [1.5, 0.0, -0.5, 1.0]], f64), tensor([[False, True], [False, False]])) == tensor([[0.5184530954801281, -0.8272797582992888, 0.5630391778837135, 0.09122582445932492], [-0.12010531126558954, -0.3184551866942984, 0.5364177138929072, -0.3827968469143833]], f64)
# run: hinted(tensor([[0.5, -1.0, 0.25, 2.0]], f64), None) raises "Need attn_mask if specifying the is_causal hint."
