//! Pipelines as text: `inline,dce,cse,peephole{accept=rounding},fix{8}(constant_propagation,dce)`.
//!
//! An item is a pass by name with options in braces, a named pipeline, or `fix{n}(…)`, which repeats its body until the
//! graph no longer changes, at most `n` times (default 8). Parsing checks every name and option against a
//! [`PassLibrary`]; a diagnostic points at the unknown name or option.

use crate::pass::{DynPass, Pass};
use crate::rules::{Exactness, RuleLibrary};
use flambeau_ir::diag::{Diagnostic, Fault};
use flambeau_ir::loc::{Source, SourceRange};
use flambeau_ir::nearest;
use hashbrown::HashMap;
use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use std::fmt;
use std::sync::Arc;

/// The options in braces after a pass's name, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassOptions(Vec<(String, String)>);

impl PassOptions {
    /// Returns the value of an option; the empty string for an option without a value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Whether an option is present without a value or with one of the values `true`, `yes`, `1`.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("" | "true" | "yes" | "1"))
    }

    /// Returns an option as a number; `None` if it is absent.
    ///
    /// # Errors
    /// Returns a message if the value is not a number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, String> {
        self.get(name)
            .map(|v| v.parse().map_err(|_| format!("option `{name}`: expected a number, found `{v}`")))
            .transpose()
    }

    /// Returns the parts of an option that are separated by `|`.
    pub fn list(&self, name: &str) -> impl Iterator<Item = &str> {
        self.get(name).into_iter().flat_map(|v| v.split('|')).map(str::trim).filter(|s| !s.is_empty())
    }

    /// Returns all options as names and values.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }
}

impl fmt::Display for PassOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let parts: Vec<String> =
            self.0.iter().map(|(n, v)| if v.is_empty() { n.clone() } else { format!("{n}={v}") }).collect();
        write!(f, "{{{}}}", parts.join(","))
    }
}

/// A pass with options.
pub trait Configure: Pass + Sized {
    /// The options that the pass accepts.
    const OPTIONS: &'static [&'static str];

    /// Creates the pass from options.
    ///
    /// # Errors
    /// Returns a message if the value of an option is invalid.
    fn configure(options: &PassOptions) -> Result<Self, String>;
}

type PassFactory = Arc<dyn Fn(&PassOptions) -> Result<Arc<dyn DynPass>, String> + Send + Sync>;

/// The entry of a pass in a library.
#[derive(Clone)]
pub struct PassEntry {
    /// The pass's name.
    pub name: &'static str,
    /// Other names of the pass.
    pub aliases: &'static [&'static str],
    /// A one-sentence description.
    pub doc: &'static str,
    /// The options that the pass accepts.
    pub options: &'static [&'static str],
    make: PassFactory,
}

impl PassEntry {
    /// The entry of a pass without options.
    pub fn of<P: Pass + Default>() -> Self {
        let make: PassFactory = Arc::new(|_| Ok(Arc::new(P::default())));
        PassEntry { name: P::NAME, aliases: P::ALIASES, doc: P::DOC, options: &[], make }
    }

    /// The entry of a pass with options.
    pub fn configured<P: Configure>() -> Self {
        let make: PassFactory = Arc::new(|options| Ok(Arc::new(P::configure(options)?)));
        PassEntry { name: P::NAME, aliases: P::ALIASES, doc: P::DOC, options: P::OPTIONS, make }
    }

    /// The entry of a pass that `make` creates from the options at each mention of its name.
    pub fn made<P: Pass>(
        options: &'static [&'static str],
        make: impl Fn(&PassOptions) -> Result<P, String> + Send + Sync + 'static,
    ) -> Self {
        let make: PassFactory = Arc::new(move |o| Ok(Arc::new(make(o)?)));
        PassEntry { name: P::NAME, aliases: P::ALIASES, doc: P::DOC, options, make }
    }
}

/// The passes and named pipelines of a session.
#[derive(Clone, Default)]
pub struct PassLibrary {
    entries: IndexMap<&'static str, PassEntry, FxBuildHasher>,
    aliases: HashMap<&'static str, &'static str, FxBuildHasher>,
    pipelines: IndexMap<String, String, FxBuildHasher>,
}

impl PassLibrary {
    /// A library without passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// A library with the passes and named pipelines of this crate.
    pub fn standard() -> Self {
        let mut library = Self::new();
        for entry in crate::passes::standard() {
            library.add(entry);
        }
        for (name, text) in crate::passes::PIPELINES {
            library.name_pipeline(name, text);
        }
        library
    }

    /// Adds a pass, replacing one of the same name.
    pub fn add(&mut self, entry: PassEntry) -> &mut Self {
        for &alias in entry.aliases {
            self.aliases.insert(alias, entry.name);
        }
        self.entries.insert(entry.name, entry);
        self
    }

    /// Sets the library of rules for the passes that apply rules, in addition to the rules that operators state.
    pub fn rules(&mut self, library: RuleLibrary) -> &mut Self {
        for entry in crate::passes::by_rules(library) {
            self.add(entry);
        }
        self
    }

    /// Adds a named pipeline. Its text is parsed where a pipeline mentions the name.
    pub fn name_pipeline(&mut self, name: &str, text: &str) -> &mut Self {
        self.pipelines.insert(name.to_owned(), text.to_owned());
        self
    }

    /// Returns the passes, in order of addition.
    pub fn passes(&self) -> impl Iterator<Item = &PassEntry> {
        self.entries.values()
    }

    /// Returns the named pipelines and their texts.
    pub fn pipelines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pipelines.iter().map(|(n, t)| (n.as_str(), t.as_str()))
    }

    /// Returns a pass by name or alias.
    pub fn find(&self, name: &str) -> Option<&PassEntry> {
        self.entries.get(self.aliases.get(name).copied().unwrap_or(name))
    }

    /// Whether a pipeline may mention `name`: as a pass, an alias or a named pipeline.
    pub fn knows(&self, name: &str) -> bool {
        self.find(name).is_some() || self.pipelines.contains_key(name)
    }

    /// The known name closest to `name`.
    fn nearest(&self, name: &str) -> Option<&str> {
        let known =
            self.entries.keys().copied().chain(self.pipelines.keys().map(String::as_str)).chain(["fix"]);
        nearest(name, known)
    }
}

/// One step of a pipeline. A repetition is a pair of steps in a flat list.
#[derive(Clone)]
pub(crate) enum PipelineStep {
    /// Run a pass.
    Run { pass: Arc<dyn DynPass>, options: PassOptions },
    /// Start of a repetition; `end` is the position of the matching `Until`.
    Repeat { end: usize, bound: u64 },
    /// End of the repetition that starts at position `begin`.
    Until { begin: usize },
}

/// A sequence of passes.
#[derive(Clone, Default)]
pub struct Pipeline {
    pub(crate) steps: Vec<PipelineStep>,
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text of the pipeline, with named pipelines expanded.
impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for step in &self.steps {
            if !first && !matches!(step, PipelineStep::Until { .. }) {
                f.write_str(",")?;
            }
            first = false;
            match step {
                PipelineStep::Run { pass, options } => write!(f, "{}{options}", pass.name())?,
                PipelineStep::Repeat { bound, .. } => {
                    write!(f, "fix{{{bound}}}(")?;
                    first = true;
                }
                PipelineStep::Until { .. } => f.write_str(")")?,
            }
        }
        Ok(())
    }
}

/// Maximum number of repetitions of `fix` if the text gives none.
const DEFAULT_BOUND: u64 = 8;
/// Maximum nesting of `fix` and of named pipelines.
const MAX_DEPTH: usize = 64;
/// Maximum length of a pipeline after expansion of named ones.
const MAX_STEPS: usize = 10_000;

impl Pipeline {
    /// A pipeline without passes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a pipeline.
    ///
    /// # Errors
    /// Returns a diagnostic with the position in `text` of the first unknown pass or option, invalid value or unmatched
    /// bracket.
    pub fn parse(text: &str, library: &PassLibrary) -> Result<Self, Box<Diagnostic>> {
        let mut pipeline = Pipeline::new();
        let mut readers = vec![Reader::new("<pipeline>", text)];
        let mut open: Vec<(usize, usize)> = Vec::new();
        loop {
            let depth = readers.len();
            let Some(reader) = readers.last_mut() else { break };
            let Some(item) = reader.item()? else {
                if open.last().is_some_and(|&(_, of)| of == depth) {
                    return Err(reader.error("`fix(` is not closed", 1));
                }
                readers.pop();
                continue;
            };
            if pipeline.steps.len() >= MAX_STEPS || open.len() + depth > MAX_DEPTH {
                return Err(reader
                    .error("the pipeline has too many steps or is nested too deeply", item.len)
                    .with_fault(Fault::Limit));
            }
            match item.kind {
                ItemKind::Close => {
                    let Some((begin, _)) = open.pop().filter(|&(_, of)| of == depth) else {
                        return Err(reader.error("`)` without `fix(`", 1));
                    };
                    let end = pipeline.steps.len();
                    if let PipelineStep::Repeat { end: slot, .. } = &mut pipeline.steps[begin] {
                        *slot = end;
                    }
                    pipeline.steps.push(PipelineStep::Until { begin });
                }
                ItemKind::Fix { bound } => {
                    open.push((pipeline.steps.len(), depth));
                    pipeline.steps.push(PipelineStep::Repeat { end: 0, bound });
                }
                ItemKind::Name(name, options) => {
                    if let Some(named) = library.pipelines.get(&name) {
                        readers.push(Reader::new(&name, named));
                        continue;
                    }
                    let step = make_step(library, reader, &name, options, item.start, item.len)?;
                    pipeline.steps.push(step);
                }
            }
        }
        Ok(pipeline)
    }

    /// Appends a pass.
    pub fn then<P: Pass>(mut self, pass: P) -> Self {
        self.steps.push(PipelineStep::Run { pass: Arc::new(pass), options: PassOptions::default() });
        self
    }

    /// Returns how results may differ after the pipeline: the least exact class of its passes.
    pub fn exactness(&self) -> Exactness {
        let of = |pass: &dyn DynPass| {
            let schedule = pass.schedule();
            schedule.others().map(DynPass::exactness).fold(pass.exactness(), Exactness::max)
        };
        self.passes().map(of).max().unwrap_or_default()
    }

    /// Returns prefixes of the messages of errors that a pass may remove. See
    /// [`Pass::removed_errors`].
    pub fn removed_errors(&self) -> impl Iterator<Item = &'static str> + '_ {
        let of = |pass: &dyn DynPass| {
            let schedule = pass.schedule();
            let others: Vec<&[&str]> = schedule.others().map(DynPass::removed_errors).collect();
            others.concat().into_iter().chain(pass.removed_errors().iter().copied())
        };
        self.passes().flat_map(of)
    }

    /// Returns the names of the passes in order.
    pub fn pass_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.passes().map(DynPass::name)
    }

    fn passes(&self) -> impl Iterator<Item = &dyn DynPass> {
        self.steps.iter().filter_map(|s| match s {
            PipelineStep::Run { pass, .. } => Some(&**pass),
            _ => None,
        })
    }
}

fn make_step(
    library: &PassLibrary,
    reader: &Reader,
    name: &str,
    options: PassOptions,
    start: usize,
    len: usize,
) -> Result<PipelineStep, Box<Diagnostic>> {
    let Some(entry) = library.find(name) else {
        if let Some((_, feature)) = crate::passes::MISSING_PASSES.iter().find(|(pass, _)| *pass == name) {
            let text = format!("pass `{name}` is not in this build, which lacks the feature `{feature}`");
            return Err(reader.error_at(text, start, len));
        }
        let error = reader.error_at(format!("there is no pass or pipeline `{name}`"), start, len);
        return Err(match library.nearest(name) {
            Some(near) => Box::new(error.help(format!("did you mean `{near}`?"))),
            None => error,
        });
    };
    for (option, _) in options.entries() {
        if !entry.options.contains(&option) {
            let known = match nearest(option, entry.options.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if entry.options.is_empty() => "it takes none".to_owned(),
                None => format!("its options are {}", entry.options.join(", ")),
            };
            let text = format!("pass `{name}` has no option `{option}`");
            return Err(Box::new(reader.error_at(text, start, len).help(known)));
        }
    }
    let pass =
        (entry.make)(&options).map_err(|e| reader.error_at(format!("pass `{name}`: {e}"), start, len))?;
    Ok(PipelineStep::Run { pass, options })
}

trait WithFault {
    fn with_fault(self, fault: Fault) -> Self;
}

impl WithFault for Box<Diagnostic> {
    fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = fault;
        self
    }
}

struct Item {
    kind: ItemKind,
    start: usize,
    len: usize,
}

enum ItemKind {
    Name(String, PassOptions),
    Fix { bound: u64 },
    Close,
}

struct Reader {
    source: Arc<Source>,
    at: usize,
    /// Whether the reader is at the start or after a comma, so that an item may follow.
    fresh: bool,
}

impl Reader {
    fn new(name: &str, text: &str) -> Self {
        Reader { source: Source::new(name, text), at: 0, fresh: true }
    }

    fn rest(&self) -> &str {
        &self.source.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, message: impl Into<String>, len: usize) -> Box<Diagnostic> {
        self.error_at(message, self.at, len)
    }

    fn error_at(&self, message: impl Into<String>, start: usize, len: usize) -> Box<Diagnostic> {
        let end = (start + len).min(self.source.text.len());
        let range = start.min(end) as u32..end as u32;
        let at = SourceRange { source: Arc::clone(&self.source), range };
        Box::new(Diagnostic::new(Fault::Input, "R0101", message).at(at))
    }

    fn item(&mut self) -> Result<Option<Item>, Box<Diagnostic>> {
        self.skip_blanks();
        while self.rest().starts_with(',') {
            self.at += 1;
            self.fresh = true;
            self.skip_blanks();
        }
        let start = self.at;
        if self.rest().is_empty() {
            return Ok(None);
        }
        if self.rest().starts_with(')') {
            self.at += 1;
            self.fresh = false;
            return Ok(Some(Item { kind: ItemKind::Close, start, len: 1 }));
        }
        if !self.fresh {
            return Err(self.error("expected `,`", 1));
        }
        let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':');
        let len = self.rest().find(|c| !word(c)).unwrap_or(self.rest().len());
        if len == 0 {
            return Err(self.error("expected the name of a pass", 1));
        }
        let name = self.rest()[..len].to_owned();
        self.at += len;
        self.fresh = false;
        self.skip_blanks();
        let options = if self.rest().starts_with('{') { Some(self.options()?) } else { None };
        self.skip_blanks();
        if !(self.rest().starts_with('(') && name == "fix") {
            return Ok(Some(Item { kind: ItemKind::Name(name, options.unwrap_or_default()), start, len }));
        }
        self.at += 1;
        self.fresh = true;
        let bound = match options.as_ref().and_then(|o| o.0.first()) {
            None => DEFAULT_BOUND,
            Some((n, v)) => {
                let text = if v.is_empty() { n } else { v };
                text.parse().map_err(|_| self.error_at("expected a number in `fix{n}`", start, len))?
            }
        };
        Ok(Some(Item { kind: ItemKind::Fix { bound }, start, len }))
    }

    fn options(&mut self) -> Result<PassOptions, Box<Diagnostic>> {
        let Some(len) = self.rest().find('}') else { return Err(self.error("`{` is not closed", 1)) };
        let inner = self.rest()[1..len].to_owned();
        self.at += len + 1;
        let entries =
            inner.split(',').map(str::trim).filter(|e| !e.is_empty()).map(|e| match e.split_once('=') {
                Some((n, v)) => (n.trim().to_owned(), v.trim().to_owned()),
                None => (e.to_owned(), String::new()),
            });
        Ok(PassOptions(entries.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::{PassCx, PassError};

    #[derive(Default)]
    struct Alpha;
    impl Pass for Alpha {
        const NAME: &'static str = "alpha";
        const ALIASES: &'static [&'static str] = &["first_letter"];
        fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
            Ok(())
        }
    }

    struct Beta(u64);
    impl Pass for Beta {
        const NAME: &'static str = "beta";
        fn run(&self, _: &mut PassCx<'_>) -> Result<(), PassError> {
            assert!(self.0 < 100);
            Ok(())
        }
    }
    impl Configure for Beta {
        const OPTIONS: &'static [&'static str] = &["n", "deep"];
        fn configure(options: &PassOptions) -> Result<Self, String> {
            Ok(Beta(options.number("n")?.unwrap_or(1)))
        }
    }

    fn library() -> PassLibrary {
        let mut l = PassLibrary::new();
        l.add(PassEntry::of::<Alpha>()).add(PassEntry::configured::<Beta>());
        l.name_pipeline("both", "alpha, beta{n=3}").name_pipeline("loop", "loop");
        l
    }

    #[test]
    fn printed_pipelines_read_back() {
        let p = Pipeline::parse(" alpha , fix ( beta{n=2, deep}, fix{3}(first_letter) ), both", &library())
            .unwrap();
        assert_eq!(p.to_string(), "alpha,fix{8}(beta{n=2,deep},fix{3}(alpha)),alpha,beta{n=3}");
        let again = Pipeline::parse(&p.to_string(), &library()).unwrap();
        assert_eq!(again.to_string(), p.to_string());
    }

    #[test]
    fn errors_have_positions() {
        let error = |t: &str| Pipeline::parse(t, &library()).unwrap_err();
        assert_eq!(error("alpha,alhpa").help.as_deref(), Some("did you mean `alpha`?"));
        assert_eq!(error("alpha,alhpa").primary.unwrap().at.range, 6..11);
        assert!(error("beta{m=2}").help.unwrap().contains("n, deep"));
        assert!(error("beta{n=x}").message.contains("expected a number"));
        assert!(error("fix(alpha").message.contains("not closed"));
        assert!(error("alpha)").message.contains("without"));
        assert!(error("alpha beta").message.contains("expected `,`"));
        assert!(error("loop").message.contains("too deeply"));
        assert!(error(&"fix(".repeat(100_000)).message.contains("too deeply"));
    }
}
