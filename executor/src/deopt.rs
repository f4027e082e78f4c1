//! Guards that are made to fail, for tests of bail-outs.

use flambeau_exec::Code;
use std::fmt;
use std::str::FromStr;

/// Guards of plans that are made to fail. Results of calls stay the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deopt {
    /// Every guard, every time.
    All,
    /// Every guard, every so many times that it is checked.
    Every(u32),
    /// The guard at this position in each plan.
    Guard(usize),
}

/// The error of a text that is not a [`Deopt`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeoptError(String);

impl fmt::Display for DeoptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not `all`, `every:N` with a positive N, or `guard:K`", self.0)
    }
}

impl std::error::Error for DeoptError {}

impl FromStr for Deopt {
    type Err = DeoptError;

    fn from_str(text: &str) -> Result<Deopt, DeoptError> {
        let parsed = match text.split_once(':') {
            None if text == "all" => Some(Deopt::All),
            Some(("every", n)) => n.parse().ok().filter(|&n| n > 0).map(Deopt::Every),
            Some(("guard", k)) => k.parse().ok().map(Deopt::Guard),
            _ => None,
        };
        parsed.ok_or_else(|| DeoptError(text.to_owned()))
    }
}

impl fmt::Display for Deopt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deopt::All => f.write_str("all"),
            Deopt::Every(n) => write!(f, "every:{n}"),
            Deopt::Guard(k) => write!(f, "guard:{k}"),
        }
    }
}

impl Deopt {
    /// Returns how often the guard at a position fails, as the period of its checks; 0 for never.
    #[must_use]
    pub fn period(self, position: usize) -> u32 {
        match self {
            Deopt::All => 1,
            Deopt::Every(n) => n,
            Deopt::Guard(k) => u32::from(k == position),
        }
    }

    /// Makes the guards of a plan's code fail.
    pub fn apply(self, code: &Code) {
        (0..code.bailouts().len()).for_each(|position| code.force_bailout(position, self.period(position)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_and_printed() {
        for text in ["all", "every:3", "guard:0"] {
            assert_eq!(text.parse::<Deopt>().unwrap().to_string(), text);
        }
        for text in ["", "every", "every:0", "guard:-1", "guard:all", "ALL"] {
            assert!(text.parse::<Deopt>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_guard_is_selected_by_its_position() {
        assert_eq!([0, 1, 2].map(|at| Deopt::Guard(1).period(at)), [0, 1, 0]);
        assert_eq!([0, 1].map(|at| Deopt::Every(4).period(at)), [4, 4]);
    }
}
