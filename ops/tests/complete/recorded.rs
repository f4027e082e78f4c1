//! Replays results recorded from PyTorch by `tests/oracle/builtins.py`.

use flambeau_exec::soundness::Prediction;
use flambeau_exec::{Gen, Host, Kernel};
use flambeau_ir::types::parse_ir_type;
use flambeau_ir::value::{Dict, IValue, Str};
use flambeau_ir::{OpId, Registry, Type};
use flambeau_tensor::{Complex, Device, Tensor};

const TABLE: &str = include_str!("../../../tests/oracle/builtins.txt");

/// Parser for the notation of the table.
struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> &'a str {
        let (taken, rest) = self.text.split_at(n);
        self.text = rest;
        taken
    }

    fn until(&mut self, stop: &[char]) -> &'a str {
        let n = self.text.find(stop).unwrap_or(self.text.len());
        self.take(n)
    }

    fn double(&mut self) -> f64 {
        f64::from_bits(u64::from_str_radix(self.take(16), 16).unwrap())
    }

    fn items(&mut self, close: char) -> Vec<IValue> {
        let mut items = Vec::new();
        while !self.text.starts_with(close) {
            items.push(self.value());
            if self.text.starts_with([',', '=']) {
                self.take(1);
            }
        }
        self.take(1);
        items
    }

    fn value(&mut self) -> IValue {
        let ends = [' ', ',', ']', '}', ')', '='];
        match self.take(1) {
            "N" => IValue::None,
            "T" => IValue::Bool(true),
            "F" => IValue::Bool(false),
            "i" => IValue::Int(self.until(&ends).parse().unwrap()),
            "f" => IValue::Float(self.double()),
            "c" => IValue::complex(Complex::new(self.double(), self.double())),
            "d" => IValue::Device(Device::parse(self.until(&ends)).unwrap()),
            "s" => {
                let hex = self.until(&ends).as_bytes();
                let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
                IValue::Str(Str::from(hex.chunks(2).map(byte).collect::<Vec<u8>>()))
            }
            "t" => {
                let sizes: Vec<i64> = self
                    .until(&[':'])
                    .split('x')
                    .filter(|s| !s.is_empty())
                    .map(|s| s.parse().unwrap())
                    .collect();
                self.take(1);
                let values: Vec<f32> = self.until(&ends).split(';').map(|s| s.parse().unwrap()).collect();
                IValue::Tensor(Tensor::from_slice(&values, &sizes).unwrap())
            }
            "L" => {
                let ty = self.ty('|');
                let items = self.items(']');
                IValue::list(ty, items)
            }
            "D" => {
                let (key, value) = (self.ty(':'), self.ty('|'));
                let dict = Dict::new(key, value);
                let mut items = self.items('}').into_iter();
                while let (Some(k), Some(v)) = (items.next(), items.next()) {
                    dict.insert(k, v).unwrap();
                }
                IValue::Dict(dict)
            }
            "(" => IValue::tuple(self.items(')')),
            other => panic!("`{other}` begins no value, before `{}`", self.text),
        }
    }

    /// Parses the type before `stop`, and skips the bracket after that.
    fn ty(&mut self, stop: char) -> Type {
        let ty = parse_ir_type(self.until(&[stop]), 0).unwrap().0;
        self.take(if stop == '|' { 2 } else { 1 });
        ty
    }
}

fn values(text: &str) -> Vec<IValue> {
    text.split(' ').filter(|t| !t.is_empty()).map(|t| Reader { text: t }.value()).collect()
}

fn write(out: &mut String, value: &IValue) {
    let name = |ty: Type| ty.to_string().replace(' ', "");
    let double = |x: f64| format!("{:016x}", x.to_bits());
    let many = |out: &mut String, items: &[IValue]| {
        for (i, item) in items.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            write(out, item);
        }
    };
    match value {
        IValue::None => out.push('N'),
        IValue::Bool(b) => out.push(if *b { 'T' } else { 'F' }),
        IValue::Int(i) => out.push_str(&format!("i{i}")),
        IValue::Float(x) => out.push_str(&format!("f{}", double(*x))),
        IValue::Complex(z) => out.push_str(&format!("c{}{}", double(z.re), double(z.im))),
        IValue::Device(d) => out.push_str(&format!("d{d}")),
        IValue::Str(s) => {
            out.push('s');
            s.as_bytes().iter().for_each(|b| out.push_str(&format!("{b:02x}")));
        }
        IValue::Tensor(t) => {
            let sizes: Vec<String> = t.sizes().iter().map(i64::to_string).collect();
            let items: Vec<String> = t.to_vec::<f32>().unwrap().iter().map(|x| format!("{x:?}")).collect();
            out.push_str(&format!("t{}:{}", sizes.join("x"), items.join(";")));
        }
        IValue::List(l) => {
            out.push_str(&format!("L{}|[", name(l.elem_type())));
            many(out, &l.to_vec());
            out.push(']');
        }
        IValue::Dict(d) => {
            out.push_str(&format!("D{}:{}|{{", name(d.key_type()), name(d.value_type())));
            for (i, (k, v)) in d.to_vec().iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                write(out, k);
                out.push('=');
                write(out, v);
            }
            out.push('}');
        }
        IValue::Tuple(t) => {
            out.push('(');
            many(out, t.items());
            out.push(')');
        }
        other => panic!("{} is not in the table", other.tag()),
    }
}

fn written(values: &[IValue]) -> String {
    let each = values.iter().map(|v| {
        let mut out = String::new();
        write(&mut out, v);
        out
    });
    each.collect::<Vec<_>>().join(" ")
}

/// Returns the kernel's results in the notation of the table; they must also agree with the rules.
fn replay(registry: &Registry, id: OpId, kernel: &Kernel, args: &str) -> (String, String) {
    let schema = registry.schema(id);
    let mut args = values(args);
    let given = args.len();
    let defaults = schema.args.iter().skip(given).filter_map(|a| a.default.clone());
    args.extend(defaults);
    let mut source = Gen::from_seed(given as u64);
    let parts = (0..2).map(|_| Prediction::of_part(registry, id, &args, &mut source));
    let forecasts: Vec<Prediction> = parts.chain([Prediction::of_all(registry, id, &args)]).collect();
    // A kernel may take its arguments; containers are shared with these copies.
    let kept: Vec<IValue> = args[..given].to_vec();
    match kernel.call_on(schema, &mut args, &mut Host::quiet()) {
        Ok(rets) => {
            let wrong = forecasts.iter().find_map(|forecast| forecast.wrong(&rets));
            (wrong.unwrap_or_else(|| written(&rets)), written(&kept))
        }
        Err(error) => (format!("!{}", error.message().lines().next().unwrap_or_default()), String::new()),
    }
}

#[test]
fn operators_on_scalars_and_strings_give_recorded_results() {
    let registry = flambeau_ops::registry();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for line in TABLE.lines() {
        let unescaped = line.replace("\\n", "\n").replace("\\\\", "\\");
        let fields: Vec<&str> = unescaped.split('\t').collect();
        let [op, args, want, after] = fields[..] else { panic!("four fields: {line}") };
        let id = registry.lookup(op).unwrap_or_else(|| panic!("{op} is declared"));
        let Some(kernel) = registry.facet::<Kernel>(id) else {
            wrong.push(format!("{op}: no kernel"));
            continue;
        };
        checked += 1;
        let got = replay(&registry, id, kernel, args);
        if got != (want.to_owned(), after.to_owned()) {
            wrong.push(format!("{op} {args}\n   want {want} | {after}\n   got  {} | {}", got.0, got.1));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {checked} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
    assert!(checked > 4000, "{checked}");
}

#[test]
fn the_notation_reads_back() {
    let text = "Lint|[] Lstr|[s61,s] Dstr:int|{s61=i1} (i1,F) L(int,str)|[(i1,s)] N dcpu";
    assert_eq!(written(&values(text)), text);
}
