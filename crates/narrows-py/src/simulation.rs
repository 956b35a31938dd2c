//! Runs in virtual time.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration as Span;

use arrow_array::RecordBatch;
use narrows_columns::{BATCH, Columns, PacketColumns, SeriesColumns, with_one_dictionary};
use narrows_core::{Duration, LinkConfig, Time};
use narrows_scenario::Scenario;
use narrows_sim::{AdjustLink, Observers, SimError, SimOptions, observe_all};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::columns::Table;
use crate::elements::Elements;
use crate::error::{failed, other};
use crate::report::Report;

/// Of the looks that a run takes around, each a fraction of a millisecond after the last, one in so many is Python's: to hear
/// Ctrl-C and tell the progress. Without a clock.
const LOOKS: u32 = 32;
/// Whoever waits for a table hears Ctrl-C this often.
const LOOK: Span = Span::from_millis(50);
/// Tables that wait for whoever reads them.
const WAITING: usize = 4;

/// What came of a run.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Simulation {
    report: Py<Report>,
    packets: Option<Py<Table>>,
    series: Option<Py<Table>>,
}

#[pymethods]
impl Simulation {
    /// The report.
    #[getter]
    fn report(&self, py: Python<'_>) -> Py<Report> {
        self.report.clone_ref(py)
    }

    /// Records of packets, if they were asked for.
    #[getter]
    fn packets(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.packets.as_ref().map(|table| table.clone_ref(py))
    }

    /// The series, if it was asked for.
    #[getter]
    fn series(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.series.as_ref().map(|table| table.clone_ref(py))
    }
}

/// Batches that are complete, and the columns of the next one.
#[derive(Default)]
struct Growing<C> {
    columns: C,
    batches: Vec<RecordBatch>,
}

impl<C: Columns> Growing<C> {
    fn cut(&mut self) {
        if self.columns.rows() >= BATCH {
            self.batches.push(self.columns.take());
        }
    }

    fn table(mut self) -> Table {
        if self.columns.rows() > 0 {
            self.batches.push(self.columns.take());
        }
        with_one_dictionary(&mut self.batches);
        Table::new(C::schema(), self.batches)
    }
}

/// Runs a scenario, to the end or to Ctrl-C. `progress` is called with the seconds of virtual time so far.
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    options: &SimOptions,
    packets: bool,
    interval: Option<Duration>,
    progress: Option<Py<PyAny>>,
    elements: Elements,
) -> PyResult<Simulation> {
    let mut options = options.clone();
    let outcome = py.detach(|| {
        loop {
            let packets = packets.then(|| Rc::new(RefCell::new(Growing::<PacketColumns>::default())));
            let series = interval
                .map(|interval| (interval, Rc::new(RefCell::new(Growing::<SeriesColumns>::default()))));
            let observers = Observers {
                packets: packets.clone().map(|growing| -> narrows_sim::Observer {
                    Box::new(move |packet| {
                        let mut growing = growing.borrow_mut();
                        growing.columns.push(packet);
                        growing.cut();
                    })
                }),
                series: series.clone().map(|(interval, growing)| -> (_, narrows_sim::SeriesObserver) {
                    let observer = move |row: &narrows_report::SeriesRow<'_>| {
                        let mut growing = growing.borrow_mut();
                        growing.columns.push(row);
                        growing.cut();
                    };
                    (interval, Box::new(observer))
                }),
            };
            let (mut looks, mut raised) = (0_u32, None);
            let broken = elements.error();
            let mut place = |link: &mut LinkConfig| elements.place(link);
            let adjust: Option<AdjustLink<'_>> = if elements.is_empty() { None } else { Some(&mut place) };
            let result = observe_all(scenario, &options, adjust, observers, &mut |at| {
                if broken.is_there() {
                    return ControlFlow::Break(());
                }
                looks += 1;
                if looks < LOOKS {
                    return ControlFlow::Continue(());
                }
                looks = 0;
                match Python::attach(|py| tell(py, progress.as_ref(), at)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        raised = Some(error);
                        ControlFlow::Break(())
                    }
                }
            });
            // What the observers have been told of counts for nothing, if the run has to begin again on one thread.
            if matches!(result, Err(SimError::Whole(_))) && raised.is_none() {
                options.threads = 1;
                continue;
            }
            // The observers have gone with the run.
            let packets = packets.map(|growing| growing.take().table());
            let series = series.map(|(_, growing)| growing.take().table());
            break match raised.or(broken.take()) {
                Some(error) => Err(error),
                None => result.map(|result| (result.report, packets, series)).map_err(failed),
            };
        }
    });
    let (report, packets, series) = outcome?;
    let object = |table: Option<Table>| table.map(|table| Py::new(py, table)).transpose();
    Ok(Simulation {
        report: Py::new(py, Report::from(report))?,
        packets: object(packets)?,
        series: object(series)?,
    })
}

fn tell(py: Python<'_>, progress: Option<&Py<PyAny>>, at: Time) -> PyResult<()> {
    py.check_signals()?;
    if let Some(progress) = progress {
        progress.call1(py, (at.nanos() as f64 / 1e9,))?;
    }
    Ok(())
}

/// A run in a thread beside: an iterator of tables. It is broken off when the iterator is closed or goes.
#[pyclass(frozen, module = "narrows._narrows")]
pub(crate) struct Packets {
    running: Mutex<Option<Running>>,
}

struct Running {
    batches: Receiver<RecordBatch>,
    thread: JoinHandle<Result<(), SimError>>,
    _over: Over,
}

/// Breaks the run off when it goes.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Packets {
    pub(crate) fn start(scenario: Scenario, options: SimOptions) -> PyResult<Self> {
        let (sender, batches) = sync_channel(WAITING);
        let over = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&over);
        let thread = thread::Builder::new()
            .name("narrows-packets".into())
            .spawn(move || produce(&scenario, &options, sender, &theirs))
            .map_err(other)?;
        Ok(Self { running: Mutex::new(Some(Running { batches, thread, _over: Over(over) })) })
    }
}

fn produce(
    scenario: &Scenario,
    options: &SimOptions,
    sender: SyncSender<RecordBatch>,
    over: &AtomicBool,
) -> Result<(), SimError> {
    let columns = Rc::new(RefCell::new(PacketColumns::default()));
    let (to, last) = (sender.clone(), Rc::clone(&columns));
    let observer: narrows_sim::Observer = Box::new(move |packet| {
        let mut columns = columns.borrow_mut();
        columns.push(packet);
        if columns.rows() >= BATCH {
            // Nobody listens any more: the run is about to be broken off.
            let _ = to.send(columns.take());
        }
    });
    let observers = Observers { packets: Some(observer), series: None };
    let result =
        observe_all(scenario, options, None, observers, &mut |_| match over.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
    let mut last = last.borrow_mut();
    if last.rows() > 0 {
        // As above.
        let _ = sender.send(last.take());
    }
    result.map(drop)
}

#[pymethods]
impl Packets {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        loop {
            // Whoever waits for a table hears Ctrl-C, and keeps no other thread of Python from its work.
            let next = py.detach(|| {
                let running = self.running.lock().map_err(poisoned)?;
                PyResult::Ok(running.as_ref().map(|running| running.batches.recv_timeout(LOOK)))
            })?;
            py.check_signals()?;
            match next {
                None => return Ok(None),
                Some(Ok(batch)) => {
                    return Ok(Some(Table::new(PacketColumns::schema(), vec![batch])));
                }
                Some(Err(mpsc::RecvTimeoutError::Timeout)) => {}
                Some(Err(mpsc::RecvTimeoutError::Disconnected)) => {
                    let ended = py.detach(|| PyResult::Ok(self.running.lock().map_err(poisoned)?.take()))?;
                    let Some(Running { thread, _over, .. }) = ended else {
                        return Ok(None);
                    };
                    return match py.detach(|| thread.join()) {
                        Ok(result) => result.map(|()| None).map_err(failed),
                        Err(_) => Err(PyRuntimeError::new_err("the run panicked")),
                    };
                }
            }
        }
    }

    /// Breaks the run off.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            if let Ok(mut running) = self.running.lock()
                && let Some(Running { batches, thread, _over: over }) = running.take()
            {
                drop((batches, over));
                // What it would have said is for nobody.
                let _ = thread.join();
            }
        });
    }
}

fn poisoned<T>(_: T) -> PyErr {
    PyRuntimeError::new_err("another thread failed here")
}
