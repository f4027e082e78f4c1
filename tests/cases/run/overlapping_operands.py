# test run
# In-place operators with an operand in the written memory: the tensor itself (at 0), shared elements (1, 2), others (4).
def add_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].add_(m[at:at + 4])


def sub_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].sub_(m[at:at + 4])


def mul_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].mul_(m[at:at + 4])


def div_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].div_(m[at:at + 4])


def atan2_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].atan2_(m[at:at + 4])


def copysign_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].copysign_(m[at:at + 4])


def eq_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].eq_(m[at:at + 4])


def ge_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].ge_(m[at:at + 4])


def gt_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].gt_(m[at:at + 4])


def le_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].le_(m[at:at + 4])


def lt_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].lt_(m[at:at + 4])


def ne_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].ne_(m[at:at + 4])


def fmod_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].fmod_(m[at:at + 4])


def remainder_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].remainder_(m[at:at + 4])


def floor_divide_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].floor_divide_(m[at:at + 4])


def hypot_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].hypot_(m[at:at + 4])


def igamma_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].igamma_(m[at:at + 4])


def igammac_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].igammac_(m[at:at + 4])


def ldexp_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].ldexp_(m[at:at + 4])


def logical_and_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].logical_and_(m[at:at + 4])


def logical_or_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].logical_or_(m[at:at + 4])


def logical_xor_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].logical_xor_(m[at:at + 4])


def nextafter_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].nextafter_(m[at:at + 4])


def pow_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].pow_(m[at:at + 4])


def xlogy_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].xlogy_(m[at:at + 4])


def heaviside_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].heaviside_(m[at:at + 4])


def clamp_min_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].clamp_min_(m[at:at + 4])


def clamp_max_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].clamp_max_(m[at:at + 4])


def copy_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].copy_(m[at:at + 4])


def gcd_by(at: int):
    m = torch.arange(1, 9).to(torch.int64)
    return m[:4].gcd_(m[at:at + 4])


def lcm_by(at: int):
    m = torch.arange(1, 9).to(torch.int64)
    return m[:4].lcm_(m[at:at + 4])


def bitwise_and_by(at: int):
    m = torch.arange(1, 9).to(torch.int64)
    return m[:4].bitwise_and_(m[at:at + 4])


def bitwise_or_by(at: int):
    m = torch.arange(1, 9).to(torch.int64)
    return m[:4].bitwise_or_(m[at:at + 4])


def bitwise_xor_by(at: int):
    m = torch.arange(1, 9).to(torch.int64)
    return m[:4].bitwise_xor_(m[at:at + 4])


def bitwise_left_shift_by(at: int):
    m = torch.arange(1, 9).to(torch.int64)
    return m[:4].bitwise_left_shift_(m[at:at + 4])


def bitwise_right_shift_by(at: int):
    m = torch.arange(1, 9).to(torch.int64)
    return m[:4].bitwise_right_shift_(m[at:at + 4])


def lerp_number(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].lerp_(m[at:at + 4], 0.5)


def lerp_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].lerp_(torch.ones([4]), m[at:at + 4])


def divided(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].div_(m[at:at + 4], rounding_mode="floor")


def addcmul_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].addcmul_(m[at:at + 4], torch.ones([4]))


def addcdiv_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].addcdiv_(torch.ones([4]), m[at:at + 4])


def clamp_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].clamp_(m[at:at + 4], None)


def scattered(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].scatter_(0, torch.tensor([3, 2, 1, 0]), m[at:at + 4])


def scatter_added(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].scatter_add_(0, torch.tensor([3, 2, 1, 0]), m[at:at + 4])


def scatter_reduced(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].scatter_reduce_(0, torch.tensor([3, 2, 1, 0]), m[at:at + 4], "amax")


def index_added(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].index_add_(0, torch.tensor([3, 2, 1, 0]), m[at:at + 4])


def index_copied(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].index_copy_(0, torch.tensor([3, 2, 1, 0]), m[at:at + 4])


def index_reduced(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].index_reduce_(0, torch.tensor([3, 2, 1, 0]), m[at:at + 4], "amax")


def put_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].put_(torch.tensor([3, 2, 1, 0]), m[at:at + 4])


def index_put_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].index_put_([torch.tensor([3, 2, 1, 0])], m[at:at + 4])


def masked_scattered(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].masked_scatter_(torch.tensor([True, False, True, True]), m[at:at + 4]).sum() > 0


def addr_by(at: int):
    m = torch.arange(1, 9).to(torch.float32)
    return m[:4].view([2, 2]).addr_(m[at:at + 2], torch.ones([2]))


# run: add_by(0) ~= tensor([2.0, 4.0, 6.0, 8.0], f32)
# run: add_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: add_by(4) ~= tensor([6.0, 8.0, 10.0, 12.0], f32)
# run: sub_by(0) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: sub_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: sub_by(4) ~= tensor([-4.0, -4.0, -4.0, -4.0], f32)
# run: mul_by(0) ~= tensor([1.0, 4.0, 9.0, 16.0], f32)
# run: mul_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: mul_by(4) ~= tensor([5.0, 12.0, 21.0, 32.0], f32)
# run: div_by(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: div_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: div_by(4) ~= tensor([0.2, 0.33333334, 0.42857143, 0.5], f32)
# run: atan2_by(0) ~= tensor([0.7853982, 0.7853982, 0.7853982, 0.7853982], f32)
# run: atan2_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: atan2_by(4) ~= tensor([0.19739556, 0.32175055, 0.4048918, 0.4636476], f32)
# run: copysign_by(0) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: copysign_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: copysign_by(4) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: eq_by(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: eq_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: eq_by(4) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: ge_by(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: ge_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: ge_by(4) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: gt_by(0) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: gt_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: gt_by(4) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: le_by(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: le_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: le_by(4) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: lt_by(0) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: lt_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: lt_by(4) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: ne_by(0) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: ne_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: ne_by(4) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: fmod_by(0) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: fmod_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: fmod_by(4) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: remainder_by(0) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: remainder_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: remainder_by(4) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: floor_divide_by(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: floor_divide_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: floor_divide_by(4) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: hypot_by(0) ~= tensor([1.4142135, 2.828427, 4.2426405, 5.656854], f32)
# run: hypot_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: hypot_by(4) ~= tensor([5.0990195, 6.3245554, 7.615773, 8.944272], f32)
# run: igamma_by(0) ~= tensor([0.63212043, 0.59399426, 0.57680994, 0.56652987], f32)
# run: igamma_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: igamma_by(4) ~= tensor([0.99326205, 0.98264873, 0.97036386, 0.9576199], f32)
# run: igammac_by(0) ~= tensor([0.3678794, 0.4060059, 0.42319012, 0.4334701], f32)
# run: igammac_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: igammac_by(4) ~= tensor([0.0067379475, 0.017351266, 0.029636158, 0.042380113], f32)
# run: ldexp_by(0) ~= tensor([2.0, 8.0, 24.0, 64.0], f32)
# run: ldexp_by(2) ~= tensor([8.0, 32.0, 96.0, 256.0], f32)
# run: ldexp_by(4) ~= tensor([32.0, 128.0, 384.0, 1024.0], f32)
# run: logical_and_by(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: logical_and_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: logical_and_by(4) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: logical_or_by(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: logical_or_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: logical_or_by(4) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: logical_xor_by(0) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: logical_xor_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: logical_xor_by(4) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: nextafter_by(0) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: nextafter_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: nextafter_by(4) ~= tensor([1.0000001, 2.0000002, 3.0000002, 4.0000005], f32)
# run: pow_by(0) ~= tensor([1.0, 4.0, 27.0, 256.0], f32)
# run: pow_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: pow_by(4) ~= tensor([1.0, 64.0, 2187.0, 65536.0], f32)
# run: xlogy_by(0) ~= tensor([0.0, 1.3862944, 3.295837, 5.5451775], f32)
# run: xlogy_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: xlogy_by(4) ~= tensor([1.609438, 3.583519, 5.8377304, 8.317766], f32)
# run: heaviside_by(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: heaviside_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: heaviside_by(4) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: clamp_min_by(0) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: clamp_min_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: clamp_min_by(4) ~= tensor([5.0, 6.0, 7.0, 8.0], f32)
# run: clamp_max_by(0) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: clamp_max_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: clamp_max_by(4) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: copy_by(0) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: copy_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: copy_by(4) ~= tensor([5.0, 6.0, 7.0, 8.0], f32)
# run: gcd_by(0) == tensor([1, 2, 3, 4], i64)
# run: gcd_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: gcd_by(4) == tensor([1, 2, 1, 4], i64)
# run: lcm_by(0) == tensor([1, 2, 3, 4], i64)
# run: lcm_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: lcm_by(4) == tensor([5, 6, 21, 8], i64)
# run: bitwise_and_by(0) == tensor([1, 2, 3, 4], i64)
# run: bitwise_and_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: bitwise_and_by(4) == tensor([1, 2, 3, 0], i64)
# run: bitwise_or_by(0) == tensor([1, 2, 3, 4], i64)
# run: bitwise_or_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: bitwise_or_by(4) == tensor([5, 6, 7, 12], i64)
# run: bitwise_xor_by(0) == tensor([0, 0, 0, 0], i64)
# run: bitwise_xor_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: bitwise_xor_by(4) == tensor([4, 4, 4, 12], i64)
# run: bitwise_left_shift_by(0) == tensor([2, 8, 24, 64], i64)
# run: bitwise_left_shift_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: bitwise_left_shift_by(4) == tensor([32, 128, 384, 1024], i64)
# run: bitwise_right_shift_by(0) == tensor([0, 0, 0, 0], i64)
# run: bitwise_right_shift_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: bitwise_right_shift_by(4) == tensor([0, 0, 0, 0], i64)
# run: lerp_number(0) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: lerp_number(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: lerp_number(4) ~= tensor([3.0, 4.0, 5.0, 6.0], f32)
# run: lerp_by(0) ~= tensor([1.0, 0.0, -3.0, -8.0], f32)
# run: lerp_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: lerp_by(4) ~= tensor([1.0, -4.0, -11.0, -20.0], f32)
# run: divided(0) ~= tensor([1.0, 1.0, 1.0, 1.0], f32)
# run: divided(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: divided(4) ~= tensor([0.0, 0.0, 0.0, 0.0], f32)
# run: addcmul_by(0) ~= tensor([2.0, 4.0, 6.0, 8.0], f32)
# run: addcmul_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: addcmul_by(4) ~= tensor([6.0, 8.0, 10.0, 12.0], f32)
# run: addcdiv_by(0) ~= tensor([2.0, 2.5, 3.3333333, 4.25], f32)
# run: addcdiv_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: addcdiv_by(4) ~= tensor([1.2, 2.1666667, 3.142857, 4.125], f32)
# run: clamp_by(0) ~= tensor([1.0, 2.0, 3.0, 4.0], f32)
# run: clamp_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: clamp_by(4) ~= tensor([5.0, 6.0, 7.0, 8.0], f32)
# run: scattered(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: scattered(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: scattered(4) ~= tensor([8.0, 7.0, 6.0, 5.0], f32)
# run: scatter_added(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: scatter_added(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: scatter_added(4) ~= tensor([9.0, 9.0, 9.0, 9.0], f32)
# run: scatter_reduced(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: scatter_reduced(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: scatter_reduced(4) ~= tensor([8.0, 7.0, 6.0, 5.0], f32)
# run: index_added(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: index_added(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: index_added(4) ~= tensor([9.0, 9.0, 9.0, 9.0], f32)
# run: index_copied(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: index_copied(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: index_copied(4) ~= tensor([8.0, 7.0, 6.0, 5.0], f32)
# run: index_reduced(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: index_reduced(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: index_reduced(4) ~= tensor([8.0, 7.0, 6.0, 5.0], f32)
# run: put_by(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: put_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: put_by(4) ~= tensor([8.0, 7.0, 6.0, 5.0], f32)
# run: index_put_by(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: index_put_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: index_put_by(4) ~= tensor([8.0, 7.0, 6.0, 5.0], f32)
# run: masked_scattered(0) == tensor(True, bool)
# run: masked_scattered(2) == tensor(True, bool)
# run: masked_scattered(4) == tensor(True, bool)
# run: addr_by(0) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: addr_by(2) raises "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation."
# run: addr_by(4) ~= tensor([[6.0, 7.0], [9.0, 10.0]], f32)
