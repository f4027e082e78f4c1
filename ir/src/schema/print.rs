//! Printing of schemas in PyTorch's format.

use std::fmt::{self, Write};

use super::{Argument, FunctionSchema};
use crate::types::{Type, TypeKind};
use crate::value::{IValue, PrintStyle, print_value, quote};

impl fmt::Display for FunctionSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if !self.overload.is_empty() {
            write!(f, ".{}", self.overload)?;
        }
        f.write_str("(")?;
        let mut comma = "";
        let mut starred = false;
        for arg in &self.args {
            f.write_str(comma)?;
            if arg.kwarg_only && !std::mem::replace(&mut starred, true) {
                f.write_str("*, ")?;
            }
            write!(f, "{arg}")?;
            comma = ", ";
        }
        if self.vararg {
            write!(f, "{comma}...")?;
        }
        f.write_str(") -> ")?;
        write_returns(f, self)
    }
}

fn write_returns(f: &mut fmt::Formatter<'_>, schema: &FunctionSchema) -> fmt::Result {
    let mut text = String::new();
    for (i, result) in schema.returns.iter().enumerate() {
        write!(text, "{}{result}", if i > 0 { ", " } else { "" })?;
    }
    if schema.varret {
        text.push_str(if schema.returns.is_empty() { "..." } else { ", ..." });
    }
    // A single result has no parentheses, unless its text would parse as a list of results.
    let one = schema.returns.len() + usize::from(schema.varret) == 1;
    if one && !text.starts_with('(') { f.write_str(&text) } else { write!(f, "({text})") }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = self.real_ty.optional_elem();
        let bare = optional.unwrap_or(self.real_ty);
        match bare.list_elem() {
            Some(elem) => {
                write!(f, "{}", elem.str_text())?;
                if let Some(inner) = self.alias.as_ref().and_then(|a| a.contained.first()) {
                    write!(f, "{inner}")?;
                }
                f.write_str("[")?;
                if let Some(n) = self.n {
                    write!(f, "{n}")?;
                }
                f.write_str("]")?;
            }
            None => write!(f, "{}", bare.str_text())?,
        }
        if let Some(alias) = self.alias.as_ref().filter(|a| !a.before.is_empty()) {
            write!(f, "{alias}")?;
        }
        if optional.is_some() {
            f.write_str("?")?;
        }
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if let Some(default) = &self.default {
            f.write_str("=")?;
            write_default(f, self.real_ty, default)?;
        }
        Ok(())
    }
}

fn write_default(f: &mut fmt::Formatter<'_>, ty: Type, default: &IValue) -> fmt::Result {
    if let (IValue::Str(s), TypeKind::Str) = (default, ty.unwrap_optional().kind()) {
        return f.write_str(&quote(s.as_bytes()));
    }
    // `int[2] stride=1`: one number stands for a list of equal numbers.
    if ty == Type::LIST_INT
        && let Some(ints) = default.as_list().and_then(|l| l.to_ints())
        && ints.len() > 1
        && ints.iter().all(|&i| i == ints[0])
    {
        return write!(f, "{}", ints[0]);
    }
    print_value(f, default, PrintStyle::Str, &mut |out, t| write!(out, "{t:?}"))
}
