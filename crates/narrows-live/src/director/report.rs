//! Reports: formats the counters of packet threads.

use narrows_core::{Duration, Time};
use narrows_frame::WriteError;
use narrows_report::{ApplicationInfo, CaptureReport, Part, Report, RunInfo, SourceInfo, SourceMeter};
use narrows_traffic::application_infos;

use super::Director;
use super::requests::{Hurry, let_others_run};
use super::worker::Worker;
use crate::data::LoopError;
use crate::data::orders::{Answer, Order};
use crate::data::sample::{Sample, Sampled};
use crate::recorder;
use crate::router;

/// If half of all packets are read later than this, packet threads do not keep up.
const OVERLOADED: Duration = Duration::from_millis(10);
/// The maximum number of sources named for skipped packets.
const MOST_SOURCES: usize = 4;
/// The maximum number of ports named for lost packets.
const MOST_PORTS: usize = 4;

impl Director {
    /// What a packet thread needs to take a sample.
    fn sample(&mut self, number: usize, info: &RunInfo) -> Box<Sample> {
        Box::new(Sample { info: info.clone(), meter: self.pool.workers[number].meter() })
    }

    /// The report so far. Packet threads that are too busy to answer are included as of their last answer, and the
    /// report says so.
    pub(super) fn report_so_far(&mut self, info: &RunInfo, hurry: Hurry<'_>) -> Result<Report, LoopError> {
        self.hear()?;
        let now = self.advance();
        let mut info = info.clone();
        info.update(self.plan.scenario());
        for number in 0..self.pool.len() {
            // A thread that still owes an answer has had its time.
            if self.pool.workers[number].asked.is_none() {
                let order = Order::Sample(self.sample(number, &info));
                let worker = &mut self.pool.workers[number];
                worker.asked = Some(now);
                worker.tell(order);
                worker.call();
            }
        }
        let is_due = |director: &Self| {
            director.pool.workers.iter().all(|worker| worker.asked.is_none_or(|asked| asked < now))
        };
        if !is_due(self) {
            self.gather(hurry, |director, number, answer| {
                director.take(number, answer)?;
                Ok(is_due(director))
            })?;
        }
        info.span = (Time::ZERO, self.clock.now());
        for (number, worker) in
            self.pool.workers.iter().enumerate().filter(|(_, worker)| worker.asked.is_some())
        {
            let since = match &worker.last {
                Some(last) => format!("its figures are from {}", last.info.span.1),
                None => "it has no figures yet".into(),
            };
            info.notes.push(format!("packet thread {number} is too busy to report within a second; {since}"));
        }
        info.notes.extend(self.plan.notes());
        Ok(self.report(&info))
    }

    /// Closes the input log, and reports.
    ///
    /// # Errors
    /// If the log cannot be written, or a packet thread does not stop.
    pub fn finish(mut self, info: &mut RunInfo) -> Result<Report, LoopError> {
        self.halt()?;
        // No thread has gone further than this.
        let end = self.clock.now();
        let _ = self.plan.advance(end);
        info.update(self.plan.scenario());
        info.span = (Time::ZERO, end);
        let samples: Vec<_> = (0..self.pool.len()).map(|number| self.sample(number, info)).collect();
        let mut samples = samples.into_iter();
        self.pool.tell(|_| match samples.next() {
            Some(sample) => Order::Finish(end, sample),
            None => Order::Quit,
        });
        let (count, mut capture, mut taps) = (self.pool.len(), None, Vec::new());
        let (mut unwritten, mut lacking) = (Vec::new(), None);
        self.await_all(count, |pool, number, answer| match answer {
            Answer::Finished(sampled, outputs) => {
                capture = outputs.capture.map(|own| (own, sampled.engine_at)).or(capture.take());
                taps.extend(outputs.packets.map(|tap| (tap, sampled.engine_at)));
                lacking = lacking.take().or(outputs.record);
                pool.workers[number].take(sampled);
                None
            }
            other => Some(other),
        })?;
        if self.series.is_some() {
            // The last row covers the time until the end.
            self.pool.tell(|_| Order::Snapshot { counts: true });
            let mut series = self.series.take();
            self.await_all(count, |_, number, answer| match answer {
                Answer::Snapshot(mut snapshot, _) => {
                    series.iter_mut().for_each(|series| series.take(number, &mut snapshot));
                    None
                }
                other => Some(other),
            })?;
            info.notes.extend(series.and_then(|series| series.finish(&mut unwritten)));
        }
        info.notes
            .extend(self.packet_records.take().and_then(|records| records.finish(taps, &mut unwritten)));
        if let Some(path) = self.record.as_ref().filter(|_| count > 1) {
            let joined = || recorder::join(path, count - 1).err();
            let stay = || format!("; the parts of {} packet threads stay beside it", count - 1);
            let failed = |error: WriteError| {
                format!("the input log {} IS INCOMPLETE: {}", path.display(), error.error)
            };
            lacking = lacking.or_else(|| joined().map(failed)).map(|note| note + &stay());
            let kept =
                lacking.is_none().then(|| recorder::remove_parts(path, count - 1)).and_then(Result::err);
            info.notes.extend(
                kept.map(|error| format!("the parts of the input log {} stay: {error}", path.display())),
            );
        }
        info.notes.extend(lacking.clone());
        unwritten.extend(lacking);
        let capture: Option<CaptureReport> = capture.map(|(capture, at)| capture.finish(at));
        let answered: u64 = self.sampled().map(|sampled| sampled.answered).sum();
        if answered > 0 {
            info.notes.push(format!("ARP/ND: {answered} frames handled locally"));
        }
        let rejections: u64 = self.sampled().map(|sampled| sampled.rejections).sum();
        if rejections > 0 {
            info.notes.push(format!(
                "rules: {rejections} TCP resets and ICMP errors were sent about rejected packets"
            ));
        }
        info.notes.extend(self.plan.notes());
        Ok(Report { capture, unwritten, ..self.report(info) })
    }

    fn sampled(&self) -> impl Iterator<Item = &Sampled> {
        self.pool.workers.iter().filter_map(|worker| worker.last.as_deref())
    }

    /// Adds the results of the scenario's own traffic.
    fn report_traffic(&self, report: &mut Report) {
        let scenario = self.plan.scenario();
        let workers = self.pool.workers.iter();
        let counted = workers.flat_map(|worker| worker.traffic.iter().map(|(&place, meter)| (place, meter)));
        report.generated = SourceMeter::reports(&SourceInfo::all(scenario), counted);
        let sends: Vec<bool> = scenario.traffic.iter().map(|traffic| !traffic.sim_only).collect();
        let mut sends = sends.into_iter();
        report.generated.retain(|_| sends.next().unwrap_or(false));
        let meters: Vec<_> = self.sampled().flat_map(|sampled| &sampled.traffic.applications).collect();
        let length = Duration::from_nanos(report.end_ns - report.start_ns);
        let app = |(place, info): (u32, ApplicationInfo)| {
            let (_, meter) = meters.iter().find(|(of, _)| *of == place)?;
            Some(meter.report(&info, length))
        };
        report.applications = application_infos(scenario).into_iter().filter_map(app).collect();
    }

    /// The report from the counters of packet threads.
    fn report(&self, info: &RunInfo) -> Report {
        let mut info = info.clone();
        info.notes.extend(self.sampled().flat_map(|sampled| &sampled.silenced).map(router::silenced_note));
        let part = |worker: &Worker| {
            let counts = worker.last.as_deref().map(|sampled| sampled.counts.clone()).unwrap_or_default();
            let mut part = Part::of(&info, counts, &worker.seen, &self.ports);
            let writers = worker.feeds.iter().flat_map(|feeds| feeds.writers());
            writers.for_each(|writers| part.met(writers));
            part
        };
        let (first, others) = self.pool.workers.split_first().expect("there is a packet thread");
        let mut report = Report::of_parts(&info, part(first), others.iter().map(part));
        report.routers.extend(self.sampled().filter_map(|sampled| sampled.gateway.clone()));
        self.report_traffic(&mut report);
        let_others_run();
        report.notes.extend(overload(&report));
        report.notes.extend(missed(&report));
        report.trains =
            self.sampled().filter_map(|sampled| sampled.trains.clone()).reduce(|mut sum, more| {
                sum.add(&more);
                sum
            });
        if let Some(host) = &self.host {
            host.disturbances.look();
            for interval in
                report.lateness_violations.iter_mut().flat_map(|violation| &mut violation.intervals)
            {
                let [start, end] = [interval.start_ns, interval.end_ns].map(Time::from_nanos);
                let taken = host.disturbances.around(start, end);
                (interval.steal_ns, interval.run_queue_wait_ns) = (taken.stolen, taken.waited);
            }
            let threads = self.sampled().map(|sampled| sampled.thread).collect();
            let backends = self.pool.workers.iter().flat_map(|worker| worker.backends.clone()).collect();
            let pace = super::Pace {
                processor: self.processors.first().copied().or(self.pace.processor),
                ..self.pace
            };
            let confined = self.pool.workers.iter().all(|worker| worker.confined);
            report.host = Some(host.report(&info, pace, threads, backends, confined));
        }
        report
    }
}

/// Sources that could not send everything that was due.
fn missed(report: &Report) -> Option<String> {
    let missed: Vec<_> = report.generated.iter().filter(|source| source.missed_packets > 0).collect();
    let named = missed.iter().take(MOST_SOURCES).map(|source| {
        format!(
            "{} of {} of {}",
            source.missed_packets,
            source.missed_packets + source.offered_packets,
            source.name
        )
    });
    let mut text = named.collect::<Vec<_>>().join(", ");
    if missed.len() > MOST_SOURCES {
        text += &format!(", and some of {} more sources", missed.len() - MOST_SOURCES);
    }
    (!missed.is_empty()).then(|| format!("the host could not generate packets in time: {text} were skipped"))
}

/// A note that the host did not keep up with the packets, and where packets were lost.
fn overload(report: &Report) -> Option<String> {
    let late = report.input_lateness.filter(|lateness| lateness.p50_ns > OVERLOADED.nanos())?;
    let mut text = format!("overloaded: p50 of read delay is {} or more", Duration::from_nanos(late.p50_ns));
    let mut lost: Vec<_> =
        report.ports.iter().map(|port| (port.receive_ring_dropped_packets, &port.name)).collect();
    lost.retain(|(packets, _)| *packets > 0);
    lost.sort_by(|a, b| b.cmp(a));
    let sum: u64 = lost.iter().map(|(packets, _)| packets).sum();
    if sum > 0 {
        let named: Vec<_> =
            lost.iter().take(MOST_PORTS).map(|(packets, port)| format!("{packets} at {port}")).collect();
        let more = if lost.len() > MOST_PORTS {
            format!(", the rest at {} more", lost.len() - MOST_PORTS)
        } else {
            String::new()
        };
        text += &format!("; {sum} lost before they could be read: {}{more}", named.join(", "));
    }
    Some(text)
}
