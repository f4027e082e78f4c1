//! Tests of the executor with an optimizer that returns graphs as they are and defers every job.

use super::*;
use crate::optimizer::CompileStage;
use flambeau_exec::vm::CompiledProgram;
use flambeau_ir::text::parse_graph;
use flambeau_ir::{CompilationUnit, Registry, Source};

/// Returns graphs as they are, and keeps deferred jobs.
#[derive(Default)]
struct Deferred(Mutex<Vec<CompileJob>>);

impl StageRunner for Deferred {
    type Error = std::convert::Infallible;

    fn optimize(&self, graph: &Graph, _: CompileStage) -> Result<Graph, Self::Error> {
        Ok(graph.clone())
    }

    fn defer(&self, job: CompileJob) -> Option<CompileJob> {
        self.0.lock().push(job);
        None
    }
}

struct Calls {
    executor: Arc<Executor>,
    cache: PlanCache,
    machine: Vm,
    jobs: Deferred,
}

impl Calls {
    fn new() -> Calls {
        let source = Source::new("test.ir", "graph(%x : int):\n  return (%x)\n");
        let graph = Arc::new(parse_graph(&source, &Registry::empty()).unwrap());
        Calls {
            executor: Arc::new(Executor::new(graph, ExecutorSettings::default())),
            cache: PlanCache::new(),
            machine: Vm::new(CompiledProgram::new(Arc::new(CompilationUnit::new()))),
            jobs: Deferred::default(),
        }
    }

    /// Returns how a call ran, or whether it is pending.
    fn call(&mut self) -> Result<RunMode, bool> {
        let (mut args, mut host) = (vec![IValue::Int(3)], Host::new());
        let outcome =
            self.executor.call(&mut args, &mut self.cache, &mut self.machine, &mut host, &self.jobs);
        match outcome {
            CallOutcome::Ran { result, how, .. } => {
                assert_eq!(result.unwrap().as_int(), Some(3));
                Ok(how)
            }
            CallOutcome::Declined { pending, failure } => {
                assert!(failure.is_none() && args.len() == 1);
                Err(pending)
            }
        }
    }

    fn take_job(&self) -> CompileJob {
        let mut jobs = self.jobs.0.lock();
        assert_eq!(jobs.len(), 1);
        jobs.pop().unwrap()
    }
}

#[test]
fn calls_go_on_while_a_job_waits() {
    let mut calls = Calls::new();
    assert_eq!([calls.call(), calls.call()], [Err(true); 2]);
    let job = calls.take_job();
    assert_eq!(job.stage(), CompileStage::Profiled);
    job.run(&calls.jobs).unwrap();
    assert_eq!([calls.call(), calls.call(), calls.call()], [Ok(RunMode::Profiled); 3]);
    let job = calls.take_job();
    assert_eq!(job.stage(), CompileStage::Specialized);
    job.run(&calls.jobs).unwrap();
    assert_eq!([calls.call(), calls.call()], [Ok(RunMode::Specialized); 2]);
    assert_eq!(calls.executor.plans().len(), 1);
}

#[test]
fn a_dropped_job_ends_specialization() {
    let mut calls = Calls::new();
    assert_eq!(calls.call(), Err(true));
    drop(calls.take_job());
    assert_eq!([calls.call(), calls.call()], [Err(false); 2]);
    assert!(calls.jobs.0.lock().is_empty());
}

#[test]
fn the_job_of_a_dropped_executor_does_nothing() {
    let mut calls = Calls::new();
    assert_eq!(calls.call(), Err(true));
    let job = calls.take_job();
    assert!(job.function().is_some());
    let Calls { executor, jobs, .. } = calls;
    drop(executor);
    assert!(job.function().is_none());
    job.run(&jobs).unwrap();
}

#[test]
fn expected_calls_bind_once_and_others_again() {
    let mut calls = Calls::new();
    for _ in 0..6 {
        let _ = calls.call();
        let job = calls.jobs.0.lock().pop();
        if let Some(job) = job {
            job.run(&calls.jobs).unwrap();
        }
    }
    let mut expected = |values: &[IValue], grad_enabled: bool| -> Result<Option<i64>, ExecError> {
        let Calls { executor, cache, machine, jobs } = &mut calls;
        let mut host = Host::new();
        host.set_grad_enabled(grad_enabled);
        let bind = |bound: &mut Arguments<'_>| {
            values.iter().for_each(|value| bound.push(value.clone()));
            if values.len() > 2 {
                Err(ExecError::of(&flambeau_exec::KernelError::internal("as intended")))
            } else {
                Ok(())
            }
        };
        match executor.call_expected(cache, machine, &mut host, jobs, bind)? {
            Some(CallOutcome::Ran { result, how: RunMode::Specialized, .. }) => Ok(result?.as_int()),
            Some(_) => panic!("an expected call runs its plan"),
            None => Ok(None),
        }
    };
    let (int, float) = (IValue::Int(7), IValue::Float(7.0));
    let enabled = Host::new().grad_enabled();
    assert_eq!(expected(std::slice::from_ref(&int), enabled).unwrap(), Some(7));
    assert_eq!(expected(std::slice::from_ref(&int), !enabled).unwrap(), None);
    assert_eq!(expected(std::slice::from_ref(&float), enabled).unwrap(), None);
    assert_eq!(expected(&[], enabled).unwrap(), None);
    assert_eq!(expected(&[int.clone(), int.clone()], enabled).unwrap(), None);
    assert!(expected(&[int.clone(), float.clone(), float], enabled).is_err());
    assert_eq!(expected(&[int], enabled).unwrap(), Some(7), "as before");
}
