//! Selection of the rules that a pass applies: those of the registry and of a [`RuleLibrary`], up to an exactness.
//!
//! A rulebook holds texts. It is resolved against the registry of the graph that a pass runs on, so rows in its rules
//! always belong to that graph's registry. All passes of a library share one library, which caches their selections: rules
//! are parsed once and a selection is compiled once, whatever the number of pipelines and runs.

use super::parse::Exactness;
use super::rule::{Pat, Rule, RuleSet};
use super::vocabulary::Vocabulary;
use crate::pass::PassError;
use crate::pipeline::PassOptions;
use flambeau_ir::{Diagnostic, Fault, OpId, Registry, Source};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

/// Rules in addition to those that operators state, and the vocabulary of all rules.
#[derive(Clone, Default)]
pub struct RuleLibrary {
    texts: Vec<Arc<Source>>,
    words: Vocabulary,
    /// The rules resolved against the last registry.
    read: Arc<Mutex<Option<ParsedLibrary>>>,
    /// Selections of these rules.
    selected: Arc<Mutex<Vec<Selected>>>,
}

/// Rules that a pass applies, indexed for matching.
#[derive(Debug)]
pub(crate) struct CompiledRules {
    /// The rules.
    pub(crate) rules: RuleSet,
    /// Instances that a greedy pass applies, by the operator at their root.
    pub(crate) by_root: InstancesByRoot,
}

/// A selection of a rulebook's rules over a registry.
struct Selected {
    registry: Arc<Registry>,
    accept: Exactness,
    only: Vec<String>,
    compiled: Arc<CompiledRules>,
}

/// Maximum number of selections that a rulebook keeps. Pipelines with `only` name arbitrary rules.
const MAX_SELECTED: usize = 32;

/// The rules of a library over a registry: those that apply by default, and those that apply on request.
#[derive(Clone)]
struct ParsedLibrary {
    registry: Arc<Registry>,
    standard: Arc<RuleSet>,
    on_request: Arc<RuleSet>,
}

impl RuleLibrary {
    /// A library without rules, with the standard vocabulary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the rules of a text. The text is parsed when the registry is known.
    pub fn add(&mut self, source: Arc<Source>) -> &mut Self {
        self.texts.push(source);
        self.forget();
        self
    }

    /// Returns the vocabulary for additions.
    pub fn words(&mut self) -> &mut Vocabulary {
        self.forget();
        &mut self.words
    }

    /// Clears the caches of this library; clones of the library keep theirs.
    fn forget(&mut self) {
        self.read = Arc::default();
        self.selected = Arc::default();
    }

    /// Whether the library has no rules.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// [`RuleLibrary::resolve`] and the rules on request, cached for the last registry.
    fn read(&self, registry: &Arc<Registry>) -> Result<ParsedLibrary, Vec<Diagnostic>> {
        let mut cache = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = cache.as_ref().filter(|read| Arc::ptr_eq(&read.registry, registry)) {
            return Ok(read.clone());
        }
        let (standard, on_request) =
            match (self.resolve(registry), RuleSet::on_request(registry, &self.words)) {
                (Ok(standard), Ok(on_request)) => (Arc::new(standard), Arc::new(on_request)),
                (standard, on_request) => {
                    let mut errors = standard.err().unwrap_or_default();
                    errors.extend(on_request.err().unwrap_or_default());
                    return Err(errors);
                }
            };
        let read = ParsedLibrary { registry: Arc::clone(registry), standard, on_request };
        *cache = Some(read.clone());
        Ok(read)
    }

    /// Resolves all rules over a registry: those that its operators state, then those of the library.
    ///
    /// # Errors
    /// Returns all diagnostics of the operators' rules and of the library's texts.
    pub fn resolve(&self, registry: &Registry) -> Result<RuleSet, Vec<Diagnostic>> {
        let mut errors = Vec::new();
        let mut all = RuleSet::from_registry(registry, &self.words).unwrap_or_else(|wrong| {
            errors = wrong;
            RuleSet::new()
        });
        for source in &self.texts {
            errors.extend(all.add(source, registry, &self.words).err().unwrap_or_default());
        }
        if errors.is_empty() { Ok(all) } else { Err(errors) }
    }
}

/// The source of a pass's rules, and the selection among them.
#[derive(Default)]
pub struct Selection {
    /// The least strict class of rules to apply.
    pub accept: Exactness,
    /// If not empty, only rules with these names or of these rule sets apply.
    pub only: Vec<String>,
    /// Rules in addition to those of the registry.
    pub library: Arc<RuleLibrary>,
}

impl Selection {
    /// Selects all exact rules of the registry and of a library.
    pub fn of_library(library: RuleLibrary) -> Self {
        Selection { library: Arc::new(library), ..Selection::default() }
    }

    /// Selects the rules of the registry and of a library that match a pass's options.
    pub(crate) fn configure(options: &PassOptions, library: &Arc<RuleLibrary>) -> Result<Self, String> {
        let accept = match options.get("accept") {
            None => Exactness::Exact,
            Some(name) => Exactness::parse(name).ok_or_else(|| {
                let known: Vec<_> = Exactness::ALL.iter().map(|c| c.name()).collect();
                format!("option `accept`: expected one of {}, found `{name}`", known.join(", "))
            })?,
        };
        let only = options.list("only").map(str::to_owned).collect();
        Ok(Selection { accept, only, library: Arc::clone(library) })
    }

    fn selects(&self, rule: &Rule) -> bool {
        let (set, short) = rule.name.split_once('/').unwrap_or(("", &rule.name));
        rule.class <= self.accept
            && (self.only.is_empty() || self.only.iter().any(|o| *o == rule.name || o == short || o == set))
    }

    /// Returns the rules to apply to graphs over `registry`.
    ///
    /// # Errors
    /// Returns an error if a rule is invalid or an entry of `only` names no rule or rule set.
    pub(crate) fn rules(&self, registry: &Arc<Registry>) -> Result<Arc<CompiledRules>, PassError> {
        let mut selected = self.library.selected.lock().unwrap_or_else(PoisonError::into_inner);
        let is_this = |s: &&Selected| {
            s.accept == self.accept && s.only == self.only && Arc::ptr_eq(&s.registry, registry)
        };
        if let Some(found) = selected.iter().find(is_this) {
            return Ok(Arc::clone(&found.compiled));
        }
        let compiled = Arc::new(self.compile(registry)?);
        if selected.len() == MAX_SELECTED {
            selected.remove(0);
        }
        selected.push(Selected {
            registry: Arc::clone(registry),
            accept: self.accept,
            only: self.only.clone(),
            compiled: Arc::clone(&compiled),
        });
        Ok(compiled)
    }

    fn compile(&self, registry: &Arc<Registry>) -> Result<CompiledRules, PassError> {
        let wrong = |errors: Vec<Diagnostic>| {
            let texts: Vec<String> = errors.iter().map(Diagnostic::render).collect();
            PassError::new(Fault::Input, format!("invalid rules:\n{}", texts.join("")))
        };
        let read = self.library.read(registry).map_err(wrong)?;
        let mut all = RuleSet::clone(&read.standard);
        if !self.only.is_empty() {
            all.append(&read.on_request);
        }
        for name in &self.only {
            let known = |r: &Rule| r.name == *name || r.name.split('/').any(|part| part == name);
            if !all.rules().iter().any(known) {
                return Err(PassError::new(Fault::Misuse, format!("there is no rule or rule set `{name}`")));
            }
        }
        let rules = all.filtered(|r| self.selects(r));
        let by_root = by_root(&rules);
        Ok(CompiledRules { rules, by_root })
    }
}

/// Instances by the operator at their root.
pub(crate) type InstancesByRoot = HashMap<OpId, Vec<usize>, FxBuildHasher>;

/// Returns the instances of rules by the operator at their root. Laws are left out: applied in a fixed direction they need
/// not terminate.
fn by_root(rules: &RuleSet) -> InstancesByRoot {
    let mut map: InstancesByRoot = HashMap::default();
    for (i, instance) in rules.instances().iter().enumerate() {
        let law = rules.rules()[instance.rule].ast.both_ways;
        if let (Pat::Op(op, _), false) = (&instance.pats[usize::from(instance.left)], law) {
            map.entry(*op).or_default().push(i);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facets::{OptInRules, Rules};
    use flambeau_ir::{OpDef, RegistryBuilder};

    #[test]
    fn all_sources_of_rules_report_their_errors() {
        let mut builder = RegistryBuilder::new();
        builder.add([OpDef::new("mine::f(Tensor self) -> Tensor")
            .with(Rules::text("use mine\nrule a [exact]: stated(%x) => %x\n"))
            .with(OptInRules(Rules::text("use mine\nrule b [exact]: requested(%x) => %x\n")))]);
        let registry = builder.build().unwrap();
        let mut library = RuleLibrary::new();
        library.add(Source::new("library.rules", "use mine\nrule c [exact]: added(%x) => %x\n"));
        let error = Selection::of_library(library).rules(&registry).unwrap_err().to_string();
        for operator in ["mine::stated", "mine::added", "mine::requested"] {
            assert!(error.contains(operator), "{error}");
        }
    }
}
