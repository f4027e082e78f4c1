//! Which rules a pass applies: those of the registry and of a [`Rulebook`], up to the exactness it accepts.
//!
//! A rulebook holds texts, not operators: it is read against the registry of the graph that a pass is given, so the rows
//! its rules name are always that graph's.

use super::parse::Exactness;
use super::rule::{Rule, RuleSet};
use super::vocabulary::Vocabulary;
use crate::pass::PassError;
use crate::pipeline::Options;
use flambeau_ir::{Diagnostic, Fault, Registry, Source};
use std::sync::{Arc, Mutex, PoisonError};

/// Rules beside those that operators state about themselves, and the words all rules may use.
#[derive(Clone, Default)]
pub struct Rulebook {
    texts: Vec<Arc<Source>>,
    words: Vocabulary,
    /// What the last registry asked for made of it: all passes of a library share one book, so rules are read once.
    read: Arc<Mutex<Option<ReadBook>>>,
}

/// The rules of a book over a registry: those that apply by default, and those on request.
#[derive(Clone)]
struct ReadBook {
    registry: Arc<Registry>,
    standard: Arc<RuleSet>,
    on_request: Arc<RuleSet>,
}

impl Rulebook {
    /// No rules, and the standard words.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the rules of a text, which is read when the registry is known.
    pub fn add(&mut self, source: Arc<Source>) -> &mut Self {
        self.texts.push(source);
        self.read = Arc::default();
        self
    }

    /// The words rules may use, to add to.
    pub fn words(&mut self) -> &mut Vocabulary {
        self.read = Arc::default();
        &mut self.words
    }

    /// Whether it has no rules of its own.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// [`Rulebook::resolve`] and the rules on request, read once for a registry.
    fn read(&self, registry: &Arc<Registry>) -> Result<ReadBook, Vec<Diagnostic>> {
        let mut cache = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(read) = cache.as_ref().filter(|read| Arc::ptr_eq(&read.registry, registry)) {
            return Ok(read.clone());
        }
        let standard = Arc::new(self.resolve(registry)?);
        let on_request = Arc::new(RuleSet::on_request(registry, &self.words)?);
        let read = ReadBook { registry: Arc::clone(registry), standard, on_request };
        *cache = Some(read.clone());
        Ok(read)
    }

    /// All rules over a registry: those its operators state, then the book's own.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn resolve(&self, registry: &Registry) -> Result<RuleSet, Vec<Diagnostic>> {
        let mut all = RuleSet::from_registry(registry, &self.words)?;
        let mut errors = Vec::new();
        for source in &self.texts {
            errors.extend(all.add(source, registry, &self.words).err().unwrap_or_default());
        }
        if errors.is_empty() { Ok(all) } else { Err(errors) }
    }
}

/// Where a pass's rules come from, and which of them it applies.
#[derive(Default)]
pub struct Selection {
    /// Applies rules up to this class.
    pub accept: Exactness,
    /// If not empty: applies only rules with these names, or of these rule sets.
    pub only: Vec<String>,
    /// Rules beside those of the registry.
    pub book: Arc<Rulebook>,
    cache: Mutex<Option<(Arc<Registry>, Arc<RuleSet>)>>,
}

impl Selection {
    /// All exact rules of the registry and of a book.
    pub fn from_book(book: Rulebook) -> Self {
        Selection { book: Arc::new(book), ..Selection::default() }
    }

    /// What a pass's options choose of the registry's rules and of a book's.
    pub(crate) fn configure(options: &Options, book: &Arc<Rulebook>) -> Result<Self, String> {
        let accept = match options.get("accept") {
            None => Exactness::Exact,
            Some(name) => Exactness::parse(name).ok_or_else(|| {
                let known: Vec<_> = Exactness::ALL.iter().map(|c| c.name()).collect();
                format!("`accept` is one of {}, not `{name}`", known.join(", "))
            })?,
        };
        let only = options.list("only").map(str::to_owned).collect();
        Ok(Selection { accept, only, book: Arc::clone(book), cache: Mutex::default() })
    }

    fn wants(&self, rule: &Rule) -> bool {
        let (set, short) = rule.name.split_once('/').unwrap_or(("", &rule.name));
        rule.class <= self.accept
            && (self.only.is_empty() || self.only.iter().any(|o| *o == rule.name || o == short || o == set))
    }

    /// The rules to apply to graphs over `registry`.
    ///
    /// # Errors
    /// If the rules are wrong, or a name in `only` is none.
    pub fn rules(&self, registry: &Arc<Registry>) -> Result<Arc<RuleSet>, PassError> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, rules)) = &*cache
            && Arc::ptr_eq(of, registry)
        {
            return Ok(Arc::clone(rules));
        }
        let wrong = |errors: Vec<Diagnostic>| {
            let texts: Vec<String> = errors.iter().map(Diagnostic::render).collect();
            PassError::new(Fault::Input, format!("rules are wrong:\n{}", texts.join("")))
        };
        let read = self.book.read(registry).map_err(wrong)?;
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
        let rules = Arc::new(all.filtered(|r| self.wants(r)));
        *cache = Some((Arc::clone(registry), Arc::clone(&rules)));
        Ok(rules)
    }
}
