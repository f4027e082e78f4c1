//! Saved plans: the profiles of a program's calls as JSON, so that another process specializes without profiled runs.
//!
//! The file has no code: a process that loads it compiles the plans again, at the first call of each entry. It is keyed by the
//! version of this library, the instruction set and a hash of the program's graphs, because numbers of profiling nodes
//! mean something only in the same graph after the same passes. A file for another key is ignored. A file that is
//! malformed is an error of the function that loads it and never of a call: types in it become preconditions and
//! guards, so wrong ones cost time and do not change results. Reading takes time in proportion to the bytes.
//!
//! ```json
//! {"format": "flambeau-plans-2", "flambeau": "0.1.0", "processor": "Avx512", "program": "58c1d2…", "entries": [
//!   {"name": "forward", "profiles": [{
//!     "kinds": [1, 4295033093], "runs": 2, "disabled_guards": [],
//!     "inputs": [{"dtype": "float32", "grad": false, "sizes": [{"class": 0}, 3], "strides": [3, 1]}, "present"],
//!     "values": [null, "mixed"], "blocks": [[true, 3]]}]}]}
//! ```
//!
//! A value is `null` if it was never computed, `"absent"`, `"present"` or `"mixed"`, the type of a number or string, such as
//! `"int"`, or a tensor, whose properties are `null` if they differ between runs.

use crate::error::Error;
use crate::program::Program;
use crate::session::Execution;
use flambeau_executor::{BlockRuns, SavedProfile, SavedSize, SavedValue};
use flambeau_ir::text::PrintOptions;
use flambeau_ir::{Fault, Type};
use flambeau_tensor::{DType, simd};
use rustc_hash::FxHasher;
use serde_json::{Map, Value, json};
use std::hash::Hasher;

/// Name and version of the format.
const FORMAT: &str = "flambeau-plans-2";

/// Maximum size of a file, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// The outcome of reading a file of saved plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoredPlans {
    /// Entries use the saved profiles.
    Used {
        /// Number of profiles.
        profiles: usize,
    },
    /// The file is for something else.
    Ignored {
        /// The first difference.
        reason: String,
    },
}

impl Program {
    /// Returns the profiles of calls under [`Execution::Profiling`], as JSON for [`Program::restore_plans`].
    /// An entry that was not called, or did not compile, is not in it.
    pub fn save_plans(&self) -> String {
        let mut entries = Vec::new();
        for name in self.all_entries() {
            let Ok(entry) = self.entry(&name) else { continue };
            let profiles = self.engine.saved_profiles(entry.graph());
            if !profiles.is_empty() {
                let profiles: Vec<Value> = profiles.iter().map(profile_to_json).collect();
                entries.push(json!({ "name": name, "profiles": profiles }));
            }
        }
        let key = self.plans_key();
        let mut file = Map::new();
        file.insert("format".into(), FORMAT.into());
        file.extend(key.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
        file.insert("entries".into(), entries.into());
        Value::Object(file).to_string()
    }

    /// Restores the profiles that [`Program::save_plans`] returned in another process: the first call of each entry makes the plans.
    /// Entries that were called before are left as they are. A file of another program, processor or version of this
    /// library is ignored, and so is every file unless the session runs [`Execution::Profiling`].
    ///
    /// # Errors
    /// `S0010` for bytes that are no such file.
    pub fn restore_plans(&self, bytes: &[u8]) -> Result<RestoredPlans, Error> {
        let ignored = |reason: String| Ok(RestoredPlans::Ignored { reason });
        if bytes.len() > MAX_BYTES {
            return Err(malformed(format!("it has more than {MAX_BYTES} bytes")));
        }
        let file: Value = serde_json::from_slice(bytes).map_err(|e| malformed(e.to_string()))?;
        match file.get("format").and_then(Value::as_str) {
            Some(FORMAT) => {}
            Some(other) => return ignored(format!("the format is `{other}`, not `{FORMAT}`")),
            None => return Err(malformed("it does not state its format")),
        }
        for (name, own) in self.plans_key() {
            match file.get(name).and_then(Value::as_str) {
                Some(other) if other == own => {}
                Some(other) => return ignored(format!("`{name}` is `{other}`, not `{own}`")),
                None => return Err(malformed(format!("it does not state `{name}`"))),
            }
        }
        if self.session.execution() != Execution::Profiling {
            return ignored("the session does not specialize programs".to_owned());
        }
        let mut found = Vec::new();
        for entry in array(&file, "entries")? {
            let name =
                entry.get("name").and_then(Value::as_str).ok_or_else(|| malformed("an entry has no name"))?;
            let profiles = array(entry, "profiles")?.iter().map(profile_of_json);
            found.push((name, profiles.collect::<Result<Vec<_>, Error>>()?));
        }
        // Only now, so that a malformed file changes nothing.
        let mut profiles = 0;
        for (name, saved) in found {
            if let Ok(entry) = self.entry(name) {
                profiles += saved.len();
                self.engine.restore(entry.graph(), saved);
            }
        }
        Ok(RestoredPlans::Used { profiles })
    }

    /// Returns the names of entries, with the one that runs hooks.
    fn all_entries(&self) -> Vec<String> {
        let mut names = self.entries();
        if self.has_hooks() {
            names.push("__call__".to_owned());
        }
        names
    }

    /// Returns the key of a file of plans: the names and values of the properties that it depends on.
    fn plans_key(&self) -> [(&'static str, String); 3] {
        let mut hasher = FxHasher::default();
        let mut add = |name: &str, graph: &flambeau_ir::Graph| {
            hasher.write(name.as_bytes());
            let options = PrintOptions { flat: true, ..PrintOptions::default() };
            hasher.write(graph.to_text(options).as_bytes());
        };
        for function in self.unit().functions() {
            add(function.name.as_str(), &function.graph);
        }
        for name in self.all_entries() {
            if let Ok(entry) = self.entry(&name) {
                add(&name, entry.graph());
            }
        }
        [
            ("flambeau", env!("CARGO_PKG_VERSION").to_owned()),
            ("processor", format!("{:?}", simd::isa())),
            ("program", format!("{:016x}", hasher.finish())),
        ]
    }
}

fn malformed(what: impl std::fmt::Display) -> Error {
    Error::new(Fault::Input, "S0010", format!("the file of plans cannot be read: {what}"))
}

fn array<'v>(value: &'v Value, name: &str) -> Result<&'v Vec<Value>, Error> {
    value.get(name).and_then(Value::as_array).ok_or_else(|| malformed(format!("`{name}` is not a list")))
}

fn profile_to_json(profile: &SavedProfile) -> Value {
    let values = |all: &[SavedValue]| all.iter().map(value_to_json).collect::<Vec<_>>();
    json!({
        "kinds": profile.kinds,
        "runs": profile.runs,
        "inputs": values(&profile.inputs),
        "values": values(&profile.values),
        "blocks": profile.blocks.iter().map(block_to_json).collect::<Vec<_>>(),
        "disabled_guards": profile.disabled_guards,
    })
}

/// Writes the runs of a block: `null` if its node was never reached, else whether it was executed, and how often.
fn block_to_json(block: &BlockRuns) -> Value {
    if block.reached { json!([block.executed, block.each]) } else { Value::Null }
}

fn block_of_json(value: &Value) -> Result<BlockRuns, Error> {
    let wrong = || malformed(format!("`{value}` is not the runs of a block"));
    match value {
        Value::Null => Ok(BlockRuns::default()),
        Value::Array(parts) => match parts.as_slice() {
            [Value::Bool(executed), each @ (Value::Null | Value::Number(_))] => {
                Ok(BlockRuns { executed: *executed, each: each.as_u64(), reached: true })
            }
            _ => Err(wrong()),
        },
        _ => Err(wrong()),
    }
}

fn value_to_json(value: &SavedValue) -> Value {
    match value {
        SavedValue::Unobserved => Value::Null,
        SavedValue::OnlyNone => "absent".into(),
        SavedValue::Atoms(ty) => ty.to_string().into(),
        SavedValue::Lists(length) => json!({ "length": length }),
        SavedValue::Present => "present".into(),
        SavedValue::Mixed => "mixed".into(),
        SavedValue::Tensor { dtype, requires_grad, sizes, strides } => {
            let size = |size: &SavedSize| match *size {
                SavedSize::Known(n) => n.into(),
                SavedSize::Class(class) => json!({ "class": class }),
                SavedSize::Varying => Value::Null,
            };
            json!({
                "dtype": dtype.map(DType::name),
                "grad": requires_grad,
                "sizes": sizes.as_ref().map(|sizes| sizes.iter().map(size).collect::<Vec<_>>()),
                "strides": strides,
            })
        }
    }
}

fn profile_of_json(value: &Value) -> Result<SavedProfile, Error> {
    let numbers = |name: &str| -> Result<Vec<u64>, Error> {
        let number =
            |v: &Value| v.as_u64().ok_or_else(|| malformed(format!("`{v}` in `{name}` is not a number")));
        array(value, name)?.iter().map(number).collect()
    };
    let values =
        |name: &str| array(value, name)?.iter().map(value_of_json).collect::<Result<Vec<_>, Error>>();
    let runs = value.get("runs").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let index = |n: u64| usize::try_from(n).map_err(|_| malformed(format!("{n} is not a number of a node")));
    Ok(SavedProfile {
        kinds: numbers("kinds")?,
        runs: runs.ok_or_else(|| malformed("`runs` is not a number"))?,
        inputs: values("inputs")?,
        values: values("values")?,
        blocks: array(value, "blocks")?.iter().map(block_of_json).collect::<Result<_, _>>()?,
        disabled_guards: numbers("disabled_guards")?.into_iter().map(index).collect::<Result<_, _>>()?,
    })
}

/// The types that [`SavedValue::Atoms`] can have.
const ATOMS: [Type; 5] = [Type::BOOL, Type::INT, Type::FLOAT, Type::COMPLEX, Type::STR];

fn value_of_json(value: &Value) -> Result<SavedValue, Error> {
    let wrong = |what: &Value| malformed(format!("`{what}` is not an observed value"));
    match value {
        Value::Null => Ok(SavedValue::Unobserved),
        Value::String(name) => match name.as_str() {
            "absent" => Ok(SavedValue::OnlyNone),
            "present" => Ok(SavedValue::Present),
            "mixed" => Ok(SavedValue::Mixed),
            name => {
                let atoms = ATOMS.iter().find(|ty| ty.to_string() == name);
                atoms.map(|&ty| SavedValue::Atoms(ty)).ok_or_else(|| wrong(value))
            }
        },
        Value::Object(list) if list.len() == 1 && list.contains_key("length") => {
            let length = list["length"].as_u64().and_then(|n| usize::try_from(n).ok());
            length.map(SavedValue::Lists).ok_or_else(|| wrong(value))
        }
        Value::Object(tensor) => {
            let present = |name: &str| tensor.get(name).filter(|v| !v.is_null());
            let dtype = |v: &Value| v.as_str().and_then(DType::from_name).ok_or_else(|| wrong(v));
            let list = |v: &Value| v.as_array().cloned().ok_or_else(|| wrong(v));
            let stride = |v: &Value| v.as_i64().ok_or_else(|| wrong(v));
            let size = |v: &Value| match (v, v.get("class").and_then(Value::as_u64)) {
                (Value::Null, _) => Ok(SavedSize::Varying),
                (_, Some(class)) => u32::try_from(class).map(SavedSize::Class).map_err(|_| wrong(v)),
                _ => v.as_i64().map(SavedSize::Known).ok_or_else(|| wrong(v)),
            };
            let sizes = present("sizes").map(list).transpose()?;
            let strides = present("strides").map(list).transpose()?;
            Ok(SavedValue::Tensor {
                dtype: present("dtype").map(dtype).transpose()?,
                requires_grad: present("grad").map(|v| v.as_bool().ok_or_else(|| wrong(v))).transpose()?,
                sizes: sizes.map(|all| all.iter().map(size).collect()).transpose()?,
                strides: strides.map(|all| all.iter().map(stride).collect()).transpose()?,
            })
        }
        _ => Err(wrong(value)),
    }
}
