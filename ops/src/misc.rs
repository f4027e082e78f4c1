//! Other operators without tensors: identity, ranges, optionals, devices, enums, generators, futures, and queries of
//! the session.

use crate::hash::hash;
use crate::per_type::{Elem, OverloadRow, all, check_values_fit, machine, row};
use flambeau_analysis::ResultShapes;
use flambeau_analysis::shape::Fact;
use flambeau_exec::{ExecError, Gen, Host, Intrinsic, KernelCx, KernelError, KernelResult, Warning};
use flambeau_ir::value::{EnumValue, Future, Generator, IValue, Str};
use flambeau_ir::{AliasRule, Effects, ImplicitConversion, OpDef, Symbol, Type};
use flambeau_tensor::promote::{Promotion, can_cast, promote};
use flambeau_tensor::{DType, Device};
use std::time::{SystemTime, UNIX_EPOCH};

fn return_value(cx: &mut KernelCx<'_>, value: impl Into<IValue>) -> KernelResult {
    cx.ret(value);
    Ok(())
}

fn two(g: &mut Gen<'_>) -> Vec<IValue> {
    let elem = [Elem::Int, Elem::Str, Elem::Tensor][g.below(3)];
    let a = elem.draw(g);
    let b = if g.flag() { a.clone() } else { elem.draw(g) };
    vec![a, b]
}

fn identity() -> Vec<OpDef> {
    let doc = "`self is obj`: primitive values are compared by value, others by identity.";
    let is = machine("aten::__is__", "", doc, Intrinsic::Is).sample(|g, _| two(g));
    let is_not = machine("aten::__isnot__", "", "`self is not obj`.", Intrinsic::IsNot).sample(|g, _| two(g));
    let with_shape =
        |row: OverloadRow, answer: bool| row.defs().into_iter().map(move |def| def.with(same(answer)));
    with_shape(is, true).chain(with_shape(is_not, false)).collect()
}

/// Whether two operands are the same value, if one of them is known to be `None`; `answer` if they are.
fn same(answer: bool) -> ResultShapes {
    ResultShapes::from(move |cx| {
        // The undefined tensor is `None` at run time.
        let is_none = |i: usize| cx.is_none(i).filter(|_| cx.tensor(i).is_none_or(|t| !t.admits_undefined()));
        let (a, b) = (is_none(0)?, is_none(1)?);
        (a || b).then_some(Fact::Bool((a == b) == answer))
    })
}

fn values() -> Vec<OverloadRow> {
    vec![
        row("aten::_unwrap_optional", "", "The value, which must not be `None`.", |cx| {
            if cx.arg(0)?.is_none() {
                return Err(KernelError::input("Unwrapping null optional"));
            }
            let value = cx.take(0);
            return_value(cx, value)
        })
        .raises()
        .sample(|g, _| vec![Elem::Int.draw(g)]),
        row("aten::hash", "generic", "A number that is equal for equal values.", |cx| {
            let hash = hash(cx.arg(0)?)?;
            return_value(cx, hash)
        })
        // The hash of a tensor is derived from its address.
        .effects(Effects::RAISES | Effects::RANDOM)
        .sample(|g, _| vec![Elem::Str.draw(g)]),
        row("prim::id", "", "A number that is unique among live objects.", |cx| {
            let id = cx.arg(0)?.identity().unwrap_or(0);
            return_value(cx, id as i64)
        })
        .effects(Effects::RANDOM)
        .sample(|_, _| vec![IValue::None]),
        row(
            "aten::has_torch_function",
            "",
            "Whether arguments override operators; here they never do.",
            |cx| return_value(cx, false),
        ),
    ]
}

fn ranges() -> Vec<OverloadRow> {
    let range_args = |g: &mut Gen<'_>, _: Elem| {
        vec![IValue::Int(g.int(-5, 5)), IValue::Int(g.int(-5, 5)), IValue::Int([1, 2, -1, -3][g.below(4)])]
    };
    vec![
        machine(
            "aten::__range_length",
            "",
            "The number of elements of `range(lo, hi, step)`.",
            Intrinsic::RangeLength,
        )
        .raises()
        .sample(range_args),
        machine(
            "aten::__derive_index",
            "",
            "Element `index` of a range: `start + index * step`.",
            Intrinsic::RangeElement,
        )
        .sample(range_args),
        row("aten::__round_to_zero_floordiv", "int", "`a / b`, rounded towards zero.", |cx| {
            let (a, b) = (cx.int(0)?, cx.int(1)?);
            if b == 0 {
                return Err(KernelError::input("division by 0"));
            }
            return_value(cx, a.wrapping_div(b))
        })
        .raises()
        .sample(|g, _| vec![IValue::Int(g.int(-9, 9)), IValue::Int([1, 2, -3][g.below(3)])]),
        row("aten::Size", "", "Sizes, as a list of integers.", |cx| {
            check_values_fit(cx.list(0)?.len())?;
            let list = cx.list(0)?.copy();
            return_value(cx, list)
        })
        .sample(|g, _| vec![Elem::Int.list(g, 0)]),
        row("aten::_size_if_not_equal", "", "The first sizes if the second differ, else `None`.", |cx| {
            let (a, b) = (cx.list(0)?, cx.list(1)?);
            let differs = a.to_ints() != b.to_ints();
            let list = differs.then(|| a.copy());
            cx.ret_opt(list);
            Ok(())
        })
        .sample(|g, _| vec![Elem::Int.list(g, 0), Elem::Int.list(g, 0)]),
    ]
}

fn device_arg(_: &mut Gen<'_>, _: Elem) -> Vec<IValue> {
    vec![IValue::Device(Device::CPU)]
}

fn device_by_name() -> OverloadRow {
    row("aten::device", "", "A device by name: `cpu`, `cuda:1`.", |cx| {
        let device = parsed(cx.string(0)?)?;
        return_value(cx, device)
    })
    .raises()
    .sample(|g, _| vec![IValue::str(["cpu", "cuda:1"][g.below(2)])])
}

fn devices() -> Vec<OverloadRow> {
    let both = |_: &mut Gen<'_>, _: Elem| vec![IValue::Device(Device::CPU), IValue::Device(Device::CPU)];
    vec![
        row("aten::device", "with_index", "A device by type and number.", |cx| {
            let mut device = parsed(cx.string(0)?)?;
            let index = cx.int(1)?;
            device.index = Some(
                index
                    .try_into()
                    .map_err(|_| KernelError::input(format!("no device has the number {index}")))?,
            );
            return_value(cx, device)
        })
        .raises()
        .sample(|g, _| vec![IValue::str("cuda"), IValue::Int(g.int(0, 3))]),
        row("aten::eq", "device", "`a == b`.", |cx| {
            let same = cx.device(0)? == cx.device(1)?;
            return_value(cx, same)
        })
        .sample(both),
        row("aten::ne", "device", "`a != b`.", |cx| {
            let differ = cx.device(0)? != cx.device(1)?;
            return_value(cx, differ)
        })
        .sample(both),
        row("prim::type", "", "The name of a device's type.", |cx| {
            let name = cx.device(0)?.type_name();
            return_value(cx, name)
        })
        .sample(device_arg),
        row("prim::index", "", "A device's number, if it has one.", |cx| {
            let index = cx.device(0)?.index;
            cx.ret_opt(index.map(i64::from));
            Ok(())
        })
        .sample(device_arg),
    ]
}

fn parsed(name: &Str) -> Result<Device, KernelError> {
    Ok(Device::parse(&name.to_text())?)
}

fn member(cx: &KernelCx<'_>, i: usize) -> Result<EnumValue, KernelError> {
    match cx.arg(i)? {
        IValue::Enum(e) => Ok(e.clone()),
        other => {
            Err(KernelError::input(format!("argument {i} must be an enum member but is {}", other.tag())))
        }
    }
}

fn member_of(value: IValue) -> IValue {
    let ty = Type::enumeration(Symbol::new("__torch__.Color"), 0, value.type_of());
    IValue::Enum(EnumValue::new(ty, Symbol::new("RED"), value))
}

fn enums() -> Vec<OverloadRow> {
    let with_value: &[Elem] = &[Elem::Int, Elem::Float, Elem::Str];
    let pair = |g: &mut Gen<'_>, _: Elem| vec![member_of(Elem::Int.draw(g)), member_of(Elem::Int.draw(g))];
    vec![
        row("prim::EnumName", "", "The name of an enum's member.", |cx| {
            let name = member(cx, 0)?.name();
            return_value(cx, name.as_str())
        })
        .sample(|g, _| vec![member_of(Elem::Int.draw(g))]),
        row("prim::EnumValue", "{}", "The value of an enum's member.", |cx| {
            let value = member(cx, 0)?.value().clone();
            return_value(cx, value)
        })
        .over(with_value)
        .sample(|g, elem| vec![member_of(elem.draw(g))]),
        row("aten::eq", "enum", "Whether both are the same member of one enum.", |cx| {
            let same = member(cx, 0)?.same_member(&member(cx, 1)?);
            return_value(cx, same)
        })
        .sample(pair),
        row("aten::ne", "enum", "Whether they are different members.", |cx| {
            let same = member(cx, 0)?.same_member(&member(cx, 1)?);
            return_value(cx, !same)
        })
        .sample(pair),
    ]
}

fn session() -> Vec<OverloadRow> {
    let never = |name, doc| row(name, "", doc, |cx: &mut KernelCx<'_>| return_value(cx, false));
    vec![
        row("aten::is_scripting", "", "True: the program is compiled.", |cx| return_value(cx, true)),
        never("aten::is_autocast_enabled", "False: there is no automatic mixed precision."),
        never("aten::is_autocast_cpu_enabled", "False: there is no automatic mixed precision."),
        never("aten::_get_tracing_state", "False: a compiled program is not being traced."),
        never("aten::_nnpack_available", "False."),
        never("aten::is_vulkan_available", "False."),
        never("aten::_use_cudnn_rnn_flatten_weight", "False."),
        row("aten::is_grad_enabled", "", "Whether gradient recording is enabled.", |cx| {
            let enabled = cx.host().grad_enabled();
            return_value(cx, enabled)
        })
        .effects(Effects::IO),
        row("aten::set_grad_enabled", "", "Enables or disables gradient recording.", |cx| {
            let enabled = cx.boolean(0)?;
            cx.host().set_grad_enabled(enabled);
            Ok(())
        })
        .effects(Effects::IO),
        row("aten::warn", "", "Emits a warning to the session.", |cx| {
            let message = cx.string(0)?.clone();
            let at = cx.location();
            cx.host().warn(Warning { message: &message.to_text(), at: at.as_ref() });
            Ok(())
        })
        .effects(Effects::IO),
        row(
            "prim::AddStatValue",
            "",
            "Adds a number to a named statistic of a logger; there is no logger.",
            |_| Ok(()),
        )
        .effects(Effects::IO)
        .sample(|g, _| vec![Elem::Str.draw(g), Elem::Int.draw(g)]),
        row("prim::TimePoint", "", "Nanoseconds since an unspecified time.", |cx| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            return_value(cx, since.map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)))
        })
        .effects(Effects::IO | Effects::RANDOM),
        row("aten::_print", "", "Prints a string as it is.", |cx| {
            let text = cx.string(0)?.clone();
            cx.host().print(text.as_bytes())
        })
        .effects(Effects::IO),
        row("aten::_assert_scalar", "", "Fails with a message if a number is zero.", |cx| {
            let zero = match cx.scalar(0)? {
                flambeau_tensor::Scalar::Bool(b) => !b,
                flambeau_tensor::Scalar::Int(i) => i == 0,
                flambeau_tensor::Scalar::Float(x) => x == 0.0,
                flambeau_tensor::Scalar::Complex(z) => z.re == 0.0 && z.im == 0.0,
            };
            if zero { Err(KernelError::input(cx.string(1)?.to_text())) } else { Ok(()) }
        })
        .effects(Effects::IO | Effects::RAISES)
        .sample(|_, _| vec![IValue::Int(1), IValue::str("not zero")]),
    ]
}

fn generator_arg(g: &mut Gen<'_>, _: Elem) -> Vec<IValue> {
    vec![IValue::Generator(Generator::new(Device::CPU, g.bits()))]
}

fn generators() -> Vec<OverloadRow> {
    vec![
        row("aten::Generator", "", "A new generator of random numbers.", |cx| {
            let device = cx.opt_device(0)?.unwrap_or(Device::CPU);
            let seed = cx.opt_int(1)?.map_or(Host::SEED, |seed| seed as u64);
            return_value(cx, Generator::new(device, seed))
        })
        .effects(Effects::RANDOM),
        row("aten::manual_seed", "", "Reseeds the session's generator.", |cx| {
            let seed = cx.int(0)?;
            cx.host().rng().reseed(seed as u64);
            Ok(())
        })
        .effects(Effects::IO | Effects::RANDOM),
        row("aten::manual_seed", "generator", "Reseeds a generator and returns it.", |cx| {
            let (generator, seed) = (cx.generator(0)?, cx.int(1)?);
            generator.reseed(seed as u64);
            return_value(cx, generator)
        })
        .effects(Effects::IO)
        .sample(generator_arg),
        row("aten::initial_seed", "", "The seed of a generator.", |cx| {
            let seed = cx.generator(0)?.seed();
            return_value(cx, seed as i64)
        })
        .effects(Effects::IO)
        .sample(generator_arg),
        row("aten::seed", "", "Reseeds a generator from its previous seed and returns the new seed.", |cx| {
            let generator = cx.generator(0)?;
            let seed = generator
                .seed()
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            generator.reseed(seed);
            return_value(cx, seed as i64)
        })
        .effects(Effects::IO)
        .sample(generator_arg),
    ]
}

/// Bodies of forks run before `wait` is reached, so only a future of the host can be unfinished here.
fn wait(cx: &mut KernelCx<'_>) -> KernelResult {
    let future = match cx.arg(0)? {
        IValue::Future(f) => f.clone(),
        other => {
            return Err(KernelError::input(format!("argument 0 must be a future but is {}", other.tag())));
        }
    };
    match future.wait() {
        Ok(value) => return_value(cx, value),
        Err(error) => Err(match (error.downcast_ref::<ExecError>(), error.downcast_ref::<KernelError>()) {
            (Some(e), _) => KernelError::of_task(e),
            (_, Some(e)) => e.clone(),
            _ => KernelError::input(error.to_string()),
        }),
    }
}

fn dtype_args(g: &mut Gen<'_>, _: Elem) -> Vec<IValue> {
    let mut one = || IValue::Int(g.pick(&[DType::F32, DType::I64, DType::Bool, DType::C64]).scalar_type());
    vec![one(), one()]
}

fn dtypes() -> Vec<OverloadRow> {
    vec![
        row("aten::promote_types", "", "The promoted dtype of two dtypes.", |cx| {
            let dtype = promote(cx.dtype(0)?, cx.dtype(1)?);
            return_value(cx, dtype.scalar_type())
        })
        .sample(dtype_args),
        row("aten::can_cast", "", "Whether one dtype can be cast to another.", |cx| {
            let can = can_cast(cx.dtype(0)?, cx.dtype(1)?);
            return_value(cx, can)
        })
        .sample(dtype_args),
        row("aten::result_type", "Scalar_Scalar", "The promoted dtype of two numbers.", |cx| {
            let both = Promotion::new().scalar(cx.scalar(0)?).scalar(cx.scalar(1)?);
            let dtype = both.result().ok_or_else(|| KernelError::input("at least one number is expected"))?;
            return_value(cx, dtype.scalar_type())
        }),
        row("aten::get_autocast_dtype", "", "The type automatic mixed precision would use.", |cx| {
            let dtype = if parsed(cx.string(0)?)?.is_cpu() { DType::BF16 } else { DType::F16 };
            return_value(cx, dtype.scalar_type())
        })
        .raises()
        .sample(|_, _| vec![IValue::str("cpu")]),
    ]
}

pub(super) fn family() -> Vec<OpDef> {
    let waiting = row("aten::wait", "", "The value of a future, or its error.", wait)
        .raises()
        .sample(|g, _| vec![IValue::Future(Future::ready(Type::INT, Elem::Int.draw(g)))]);
    let families = [values(), ranges(), devices(), enums(), session(), generators(), dtypes()];
    let mut defs = all(families.into_iter().flatten());
    defs.extend(identity());
    defs.extend(waiting.defs().into_iter().map(|def| def.with(AliasRule::Waits)));
    defs.extend(device_by_name().defs().into_iter().map(|def| def.with(ImplicitConversion::StrToDevice)));
    defs
}
