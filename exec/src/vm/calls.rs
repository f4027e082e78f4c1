//! Transitions between frames: calls, returns, tasks, bail-outs, errors.

use super::dispatch::Exit;
use super::tasks::{DriveEnd, ExitDecision};
use super::{Frame, MAX_UNWIND_DEPTH, ReturnTarget, Vm, consume_fuel, steps};
use crate::bytecode::{Code, SiteOp};
use crate::error::{ExecError, Fault, KernelError};
use crate::host::Host;
use crate::kernel::Rets;
use crate::resolve;
use crate::structural::{await_value, one_value};
use flambeau_ir::value::{Future, IValue};
use flambeau_ir::{Graph, Symbol, Type};
use std::sync::{Arc, OnceLock};

/// Continuation after a transition.
enum Next {
    /// Execution continues with this frame.
    Run(Frame),
    /// The run has ended with this value.
    Done(IValue),
}

impl Vm {
    /// Runs a frame and everything it calls; continues from the exit `left` if there is one.
    pub(super) fn drive(
        &mut self,
        frame: Frame,
        left: Option<Exit>,
        fuel: u64,
        args: &mut Vec<IValue>,
        host: &mut Host,
    ) -> Result<IValue, ExecError> {
        let parks = self.tasks.forbid_suspension();
        let bottom = self.frames.len();
        let ended = self.drive_until(frame, left, bottom, fuel, args, host);
        self.tasks.restore(parks);
        match ended? {
            DriveEnd::Value(value) => Ok(value),
            DriveEnd::Suspended(..) => unreachable!("invariant: a machine that may not be suspended is not"),
        }
    }

    /// Runs a frame, everything it calls and its callers above `bottom` until the lowest of them ends, or until it must wait
    /// for a task. A suspended run continues with the `bottom` with which it began.
    pub(super) fn drive_until(
        &mut self,
        mut frame: Frame,
        mut left: Option<Exit>,
        bottom: usize,
        mut fuel: u64,
        args: &mut Vec<IValue>,
        host: &mut Host,
    ) -> Result<DriveEnd, ExecError> {
        let result = loop {
            let mut exit = match left.take() {
                Some(exit) => exit,
                None => self.execute(&mut frame, args, host, &mut fuel).unwrap_or_else(Exit::Fail),
            };
            if matches!(exit, Exit::Sync | Exit::Join(_)) || !self.tasks.is_idle() {
                match self.join_required(&mut frame, exit, &mut fuel, host) {
                    ExitDecision::Go(settled) => exit = settled,
                    ExitDecision::Next => {
                        frame.pc += 1;
                        continue;
                    }
                    ExitDecision::Suspend(left, future) => break Ok(self.suspend(frame, left, future)),
                }
            }
            if self.tasks.yields() {
                break Ok(self.suspend(frame, Some(exit), Future::ready(Type::NONE, IValue::None)));
            }
            let burnt = if matches!(exit, Exit::Call(_)) { consume_fuel(&mut fuel, host) } else { Ok(()) };
            let next = match (exit, burnt) {
                (Exit::Fail(error), _) | (_, Err(error)) => Err((frame, error)),
                (Exit::Call(site), _) if self.starts_task(&frame, site, host) => {
                    self.fork(frame, site, args, host, &mut fuel)
                }
                (Exit::Call(site), _) => self.call_site(frame, site, args, host.max_depth()),
                (Exit::BailOut(site), _) => self.bail_out(frame, site, args),
                (Exit::Unfused(site), _) => self.unfused(frame, site, args, host.max_depth()),
                (Exit::Return(site), _) => self.leave(frame, site),
                // These exits were settled above.
                (Exit::Sync | Exit::Join(_), _) => Ok(Next::Run(frame)),
            };
            match next {
                Ok(Next::Run(on)) => frame = on,
                Ok(Next::Done(value)) => break Ok(DriveEnd::Value(value)),
                Err((failed, error)) => match self.unwind(failed, &error, bottom, args, host) {
                    Ok(on) => frame = on,
                    Err(raised) => break Err(raised),
                },
            }
        };
        host.return_fuel(fuel);
        self.rets.clear();
        result
    }

    /// Starts the task of a fork beside the frame.
    fn fork(
        &mut self,
        frame: Frame,
        at: u32,
        args: &mut Vec<IValue>,
        host: &mut Host,
        fuel: &mut u64,
    ) -> Result<Next, (Frame, KernelError)> {
        let code = Arc::clone(&frame.code);
        let (s, v) = self.registers(&frame);
        steps::gather(&code, &code.sites[at as usize], s, v, args);
        self.start_task(frame, at, args, host, fuel).map(Next::Run)
    }

    /// Creates the frame of a call.
    fn call_site(
        &mut self,
        mut frame: Frame,
        at: u32,
        args: &mut Vec<IValue>,
        max_depth: usize,
    ) -> Result<Next, (Frame, KernelError)> {
        let code = Arc::clone(&frame.code);
        let site = &code.sites[at as usize];
        {
            let (s, v) = self.registers(&frame);
            steps::gather(&code, site, s, v, args);
        }
        let target = match &site.work {
            SiteOp::Function(name) => self.code(*name),
            SiteOp::Method(name) => self.method(args, *name),
            SiteOp::Enter => {
                frame.entered.extend(args.first().cloned());
                self.method(args, Symbol::new("__enter__"))
            }
            SiteOp::Exit => {
                if let Some(object) = frame.entered.pop() {
                    args.clear();
                    args.push(object);
                }
                args.resize(4, IValue::None);
                self.method(args, Symbol::new("__exit__"))
            }
            SiteOp::Subgraph(body, cell) => self.subgraph(body, cell, code.function),
            SiteOp::Fork(forked) => self.subgraph(&forked.body, &forked.code, code.function),
            SiteOp::Await => return self.wait_for(frame, at, args, max_depth),
            _ => Err(KernelError::internal("a call site without a callee")),
        };
        let after = match &site.work {
            SiteOp::Fork(forked) => ReturnTarget::Future(at, Future::new(forked.elem)),
            _ => ReturnTarget::Results(at),
        };
        self.enter(frame, target, args, after, max_depth)
    }

    /// Suspends a frame and pushes a new one for `target`, unless that is an error.
    fn enter(
        &mut self,
        frame: Frame,
        target: Result<Arc<Code>, KernelError>,
        args: &mut Vec<IValue>,
        after: ReturnTarget,
        max_depth: usize,
    ) -> Result<Next, (Frame, KernelError)> {
        let target = match target {
            Ok(target) => target,
            Err(e) => return Err((frame, e)),
        };
        self.frames.push(frame);
        self.frame(target, args, after, max_depth)
            .map(Next::Run)
            .map_err(|error| (self.frames.pop().expect("invariant: pushed above"), error))
    }

    /// Runs the subgraph of a fused group as bytecode, because its tile program does not support the arguments.
    fn unfused(
        &mut self,
        frame: Frame,
        at: u32,
        args: &mut Vec<IValue>,
        max_depth: usize,
    ) -> Result<Next, (Frame, KernelError)> {
        let code = Arc::clone(&frame.code);
        let target = match &code.sites[at as usize].work {
            SiteOp::Fused(group) => self.subgraph(group.graph(), group.code(), code.function),
            _ => Err(KernelError::internal("a site without a group")),
        };
        self.enter(frame, target, args, ReturnTarget::Results(at), max_depth)
    }

    /// Continues a frame with the first value of the argument buffer as the result of a site.
    fn continue_with_first(
        &mut self,
        frame: Frame,
        at: u32,
        args: &mut Vec<IValue>,
    ) -> Result<Next, (Frame, KernelError)> {
        let value = args.drain(..).next().unwrap_or_default();
        let mut rets = Rets::new();
        rets.push(value);
        self.resume_at(frame, at, &mut rets)
    }

    /// Returns the value of an awaitable; runs its task first if necessary.
    fn wait_for(
        &mut self,
        frame: Frame,
        at: u32,
        args: &mut Vec<IValue>,
        max_depth: usize,
    ) -> Result<Next, (Frame, KernelError)> {
        let (future, mut task) = match await_value(args) {
            Ok((_, Ok(value))) => {
                args.insert(0, value);
                return self.continue_with_first(frame, at, args);
            }
            Ok((future, Err(task))) => (future, task),
            Err(e) => return Err((frame, e)),
        };
        args.clear();
        let target = self.subgraph(&task.graph, &OnceLock::new(), frame.code.function);
        self.enter(frame, target, &mut task.args, ReturnTarget::Awaited(at, future), max_depth)
    }

    /// Replaces a frame by the continuation of the unoptimized program.
    fn bail_out(
        &mut self,
        mut frame: Frame,
        at: u32,
        args: &mut Vec<IValue>,
    ) -> Result<Next, (Frame, KernelError)> {
        let code = Arc::clone(&frame.code);
        let Some(bailout) = code.bailout(at) else {
            return Err((frame, KernelError::internal("a site without a bail-out")));
        };
        let (s, v) = self.registers(&frame);
        steps::gather(&code, &code.sites[at as usize], s, v, args);
        let supplied = match &args[..] {
            [value, captures @ ..] => code.check_failed(at, value, captures),
            [] => None,
        };
        self.clear(&frame);
        let body = match supplied {
            Some(supplied) => Ok(supplied),
            None => self.subgraph(&bailout.body, &bailout.code, code.function),
        };
        let bound = body.and_then(|body| {
            args.drain(..1);
            self.bind(&body, args, frame.words, frame.values).map(|()| body)
        });
        match bound {
            Ok(body) => {
                frame.code = body;
                frame.pc = 0;
                Ok(Next::Run(frame))
            }
            Err(e) => Err((frame, e)),
        }
    }

    /// Returns the code of a method of the first argument's class.
    fn method(&mut self, args: &[IValue], name: Symbol) -> Result<Arc<Code>, KernelError> {
        let function = resolve::method(&*self.program.callees, args, name)?;
        self.code(function)
    }

    /// Returns the code of a subgraph, compiled at first use.
    pub(super) fn subgraph(
        &self,
        body: &Arc<Graph>,
        cell: &OnceLock<Arc<Code>>,
        function: Symbol,
    ) -> Result<Arc<Code>, KernelError> {
        if let Some(code) = cell.get() {
            return Ok(Arc::clone(code));
        }
        let code = Arc::new(Code::compile_function(body, function, &*self.program.callees)?);
        Ok(Arc::clone(cell.get_or_init(|| code)))
    }

    /// Continues a frame after a call: stores the results into the registers of its site.
    fn resume_at(
        &mut self,
        mut frame: Frame,
        at: u32,
        rets: &mut Rets,
    ) -> Result<Next, (Frame, KernelError)> {
        let code = &frame.code;
        let (s, v) = self.registers(&frame);
        match steps::scatter(code, &code.sites[at as usize], rets, s, v) {
            Ok(()) => {
                frame.pc += 1;
                Ok(Next::Run(frame))
            }
            Err(e) => Err((frame, e)),
        }
    }

    /// Ends a frame and passes its results to the destination in `after`.
    fn leave(&mut self, frame: Frame, at: u32) -> Result<Next, (Frame, KernelError)> {
        self.rets.clear();
        let mut rets = std::mem::take(&mut self.rets);
        let (s, v) = self.registers(&frame);
        steps::results(&frame.code, at, s, v, &mut rets);
        let to = match frame.after {
            ReturnTarget::Done => {
                let value = one_value(rets.drain(..));
                self.rets = rets;
                return Ok(Next::Done(value));
            }
            ReturnTarget::Results(to) => to,
            ReturnTarget::Future(to, future) => {
                future.complete(Ok(one_value(rets.drain(..))));
                rets.push(IValue::Future(future));
                to
            }
            ReturnTarget::Awaited(to, future) => {
                let value = one_value(rets.drain(..));
                future.complete(Ok(value.clone()));
                rets.push(value);
                to
            }
        };
        let next = self.resume(to, &mut rets);
        rets.clear();
        self.rets = rets;
        next
    }

    /// Pops the caller's frame and continues it after the call.
    fn resume(&mut self, at: u32, rets: &mut Rets) -> Result<Next, (Frame, KernelError)> {
        let caller = self.frames.pop().expect("invariant: a called frame has a caller");
        self.resume_at(caller, at, rets)
    }

    /// Ends frames until one completes a future with the error; returns the frame to continue, or the error.
    fn unwind(
        &mut self,
        failed: Frame,
        error: &KernelError,
        bottom: usize,
        args: &mut Vec<IValue>,
        host: &mut Host,
    ) -> Result<Frame, ExecError> {
        let mut raised = ExecError::of(error);
        args.clear();
        let mut frame = failed;
        loop {
            let graph = &frame.code.graph;
            if let Some(&node) = frame.code.nodes.get(frame.pc) {
                raised.push_outer(frame.code.function, graph.op_name(node), graph.locs(), graph.loc(node));
            }
            self.clear(&frame);
            for object in std::mem::take(&mut frame.entered).into_iter().rev() {
                self.exit(object, host);
            }
            if let ReturnTarget::Future(to, future) = &frame.after
                && raised.fault != Fault::Limit
            {
                future.complete(Err(Arc::new(raised)));
                let mut rets = Rets::new();
                rets.push(IValue::Future(future.clone()));
                match self.resume(*to, &mut rets) {
                    Ok(Next::Run(on)) => return Ok(on),
                    Ok(Next::Done(_)) => unreachable!("invariant: resuming never ends a run"),
                    Err((caller, error)) => {
                        raised = ExecError::of(&error);
                        frame = caller;
                        continue;
                    }
                }
            }
            if self.frames.len() == bottom {
                return Err(raised);
            }
            frame = self.frames.pop().expect("invariant: above the bottom");
        }
    }

    /// Runs `__exit__` of an entered object; its result or error is ignored.
    fn exit(&mut self, object: IValue, host: &mut Host) {
        let mut args = vec![object, IValue::None, IValue::None, IValue::None];
        let Ok(code) = self.method(&args, Symbol::new("__exit__")) else { return };
        if self.unwind_depth >= MAX_UNWIND_DEPTH {
            return;
        }
        self.unwind_depth += 1;
        if let Ok(frame) = self.frame(code, &mut args, ReturnTarget::Done, host.max_depth()) {
            // The result and the error are ignored.
            let _ = self.drive(frame, None, 0, &mut args, host);
        }
        self.unwind_depth -= 1;
    }
}
