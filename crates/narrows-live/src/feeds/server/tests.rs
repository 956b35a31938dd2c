use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use super::super::channel::{Asked, Outlet, channel};
use super::super::lead::Lead;
use super::super::protocol::{INTEGER, QUESTION};
use super::*;

/// Looked at this often, so far apart: a test that hangs ends after a minute, under any load.
const LOOKS: u32 = 30_000;
const LOOK: std::time::Duration = std::time::Duration::from_millis(2);

const FOREVER: MonotonicTime = MonotonicTime::from_nanos(u64::MAX);

/// A feed whose packets are the test's.
struct Feed {
    outlet: Outlet,
    caller: Arc<Waker>,
    path: PathBuf,
    thread: Option<JoinHandle<()>>,
    /// What was taken out and not used up.
    waiting: usize,
    used: u64,
}

impl Feed {
    fn of(lead: Lead, two_way: bool) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("narrows-feed-{}-{number}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (waker, caller) = (Arc::new(Waker::new().unwrap()), Arc::new(Waker::new().unwrap()));
        let (outlet, intake) = channel(lead.most(), lead, waker.clone());
        let server = Server::new(listener, intake, waker, two_way.then(|| (caller.clone(), 0)));
        let thread = Some(thread::spawn(|| server.run()));
        Self { outlet, caller, path, thread, waiting: 0, used: 0 }
    }

    fn ahead(lead: usize) -> Self {
        Self::of(Lead::Values(lead), false)
    }

    fn connect(&self) -> Talk {
        Talk(UnixStream::connect(&self.path).unwrap())
    }

    /// The packet loop takes what is in the ring.
    fn take(&mut self) -> Vec<i64> {
        let mut taken = Vec::new();
        self.outlet.take(FOREVER, usize::MAX, |stamped| taken.push(stamped.value));
        self.waiting += taken.len();
        self.turn();
        taken
    }

    /// Packets use up so many values of those taken.
    fn use_up(&mut self, count: usize) {
        self.waiting -= count;
        self.used += count as u64;
        self.turn();
    }

    /// What the loop does at the end of each turn, and between two.
    fn turn(&mut self) {
        self.outlet.tell(self.waiting, self.used);
        self.outlet.call();
    }

    /// Takes and uses until there were so many.
    fn use_as_they_come(&mut self, count: usize) -> Vec<i64> {
        let mut all = Vec::new();
        eventually(&format!("{count} values"), || {
            let taken = self.take();
            self.use_up(taken.len());
            all.extend(taken);
            all.len() >= count
        });
        all
    }

    fn count(&self, of: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        of(&self.outlet.shared.counts).load(Ordering::Relaxed)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.outlet.handle().end();
        let ended = self.thread.take().map(JoinHandle::join);
        let _ = std::fs::remove_file(&self.path);
        if !thread::panicking() {
            assert!(matches!(ended, None | Some(Ok(()))), "the thread panicked");
        }
    }
}

/// A writer.
struct Talk(UnixStream);

impl Talk {
    fn say(&mut self, integers: &[i64]) {
        let bytes: Vec<u8> = integers.iter().flat_map(|integer| integer.to_le_bytes()).collect();
        self.0.write_all(&bytes).unwrap();
    }

    fn hear(&mut self) -> i64 {
        let mut bytes = [0; INTEGER];
        self.0.read_exact(&mut bytes).unwrap();
        i64::from_le_bytes(bytes)
    }

    /// Whether something is there to hear.
    fn hears(&self) -> bool {
        wait(&mut [Waiting::readable(&self.0)], Some(MonotonicTime::default())).unwrap() > 0
    }

    fn ask(&mut self, integers: &[i64]) -> i64 {
        self.say(integers);
        self.hear()
    }

    /// The last it hears, before the end of the connection. The kernel says "reset" for that where something was left
    /// unread.
    fn last(mut self) -> i64 {
        let mut all = Vec::new();
        let _ = self.0.read_to_end(&mut all);
        i64::from_le_bytes(*all.last_chunk().unwrap())
    }
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if holds() {
            return;
        }
        thread::sleep(LOOK);
    }
    panic!("a minute later still not: {what}");
}

#[test]
fn values_come_in_order_each_once_with_the_instant_at_which_they_came() {
    let mut feed = Feed::ahead(100);
    let mut writer = feed.connect();
    let before = clock_monotonic();
    writer.say(&[3, 1, -1, 2, 0]);
    assert_eq!(writer.ask(&[-2]), 95);
    let mut taken = Vec::new();
    feed.outlet.take(before, usize::MAX, |stamped| taken.push(stamped));
    assert!(taken.is_empty(), "they had not come by then");
    feed.outlet.take(clock_monotonic(), 4, |stamped| taken.push(stamped));
    feed.outlet.take(clock_monotonic(), 4, |stamped| taken.push(stamped));
    assert_eq!(taken.iter().map(|stamped| stamped.value).collect::<Vec<_>>(), [3, 1, -1, 2, 0]);
    assert!(taken.iter().all(|stamped| stamped.at > before) && taken.is_sorted_by_key(|stamped| stamped.at));
}

#[test]
fn a_byte_at_a_time() {
    let mut feed = Feed::ahead(100);
    let mut writer = feed.connect();
    for byte in [7_i64, -1, 500].iter().flat_map(|value| value.to_le_bytes()) {
        writer.0.write_all(&[byte]).unwrap();
    }
    assert_eq!(feed.use_as_they_come(3), [7, -1, 500]);
    // A request, too.
    for byte in [-3_i64, 100].iter().flat_map(|value| value.to_le_bytes()) {
        writer.0.write_all(&[byte]).unwrap();
    }
    assert_eq!(writer.hear(), 100);
}

#[test]
fn the_lead_bounds_what_waits_in_ring_and_engine_together() {
    let mut feed = Feed::ahead(10);
    let mut writer = feed.connect();
    assert_eq!(writer.ask(&[-2]), 10);
    assert_eq!(writer.ask(&[1, 2, 3, 4, -2]), 6);
    assert_eq!(feed.take(), [1, 2, 3, 4]);
    assert_eq!(writer.ask(&[-2]), 6, "they wait in the engine");
    feed.use_up(3);
    assert_eq!(writer.ask(&[-2]), 9);
    writer.say(&(5..100).collect::<Vec<_>>());
    assert_eq!(feed.use_as_they_come(95), (5..100).collect::<Vec<_>>());
}

#[test]
fn a_writer_that_does_not_ask_gets_no_further_than_the_lead() {
    let mut feed = Feed::ahead(10);
    let mut writer = feed.connect();
    writer.say(&(0..50).collect::<Vec<_>>());
    let mut waiting = Vec::new();
    eventually("ten have come", || {
        waiting.extend(feed.take());
        waiting.len() == 10
    });
    // However long one waits.
    thread::sleep(LOOK);
    assert!(feed.take().is_empty());
    feed.use_up(10);
    assert_eq!(feed.use_as_they_come(40), (10..50).collect::<Vec<_>>());
}

#[test]
fn a_writer_is_told_when_there_is_the_room_it_asked_for() {
    let mut feed = Feed::ahead(10);
    let mut writer = feed.connect();
    assert_eq!(writer.ask(&[-3, 10]), 10, "at once");
    writer.say(&[0; 8]);
    writer.say(&[-3, 5]);
    let mut taken = 0;
    eventually("all have come", || {
        taken += feed.take().len();
        taken == 8
    });
    feed.use_up(2);
    assert!(!writer.hears(), "there is room for four");
    feed.use_up(1);
    assert_eq!(writer.hear(), 5);
    // More than there can be is all there can be.
    writer.say(&[-3, i64::MAX]);
    feed.use_up(5);
    assert_eq!(writer.hear(), 10);
}

#[test]
fn what_stands_behind_a_request_waits_for_its_answer() {
    let mut feed = Feed::ahead(2);
    let mut writer = feed.connect();
    writer.say(&[1, 2, -3, 2, 3, -2]);
    assert_eq!(feed.use_as_they_come(2), [1, 2]);
    assert_eq!((writer.hear(), writer.hear()), (2, 1));
    assert_eq!(feed.use_as_they_come(1), [3]);
}

#[test]
fn a_second_writer_is_told_and_sent_away() {
    let mut feed = Feed::ahead(10);
    let mut first = feed.connect();
    assert_eq!(first.ask(&[1, -2]), 9);
    for _ in 0..3 {
        assert_eq!(feed.connect().last(), -1);
    }
    first.say(&[2]);
    assert_eq!(feed.use_as_they_come(2), [1, 2]);
    assert_eq!(feed.count(|counts| &counts.refused), 3);
    assert_eq!(feed.count(|counts| &counts.writers), 1);
}

#[test]
fn the_next_writer_takes_the_place_of_one_that_is_gone() {
    let mut feed = Feed::ahead(10);
    for value in 0..5 {
        let mut writer = feed.connect();
        assert_eq!(writer.ask(&[value, -2]), 9);
        drop(writer);
        assert_eq!(feed.use_as_they_come(1), [value]);
    }
    assert_eq!(feed.count(|counts| &counts.refused), 0);
}

#[test]
fn what_a_writer_that_is_gone_left_behind_comes_before_the_next_ones() {
    let mut feed = Feed::ahead(4);
    let mut first = feed.connect();
    first.say(&(0..100).collect::<Vec<_>>());
    drop(first);
    let mut second = feed.connect();
    second.say(&[1000]);
    let all = feed.use_as_they_come(101);
    assert_eq!(all, (0..100).chain([1000]).collect::<Vec<_>>());
    assert_eq!(feed.count(|counts| &counts.refused), 0);
}

#[test]
fn a_torn_value_is_counted_and_left_out() {
    let mut feed = Feed::ahead(10);
    let mut writer = feed.connect();
    writer.say(&[5]);
    writer.0.write_all(&[1, 2, 3]).unwrap();
    drop(writer);
    assert_eq!(feed.connect().ask(&[6, -2]), 8);
    assert_eq!(feed.use_as_they_come(2), [5, 6]);
    assert_eq!(feed.count(|counts| &counts.torn), 1);
}

#[test]
fn a_malformed_writer_is_told_and_cut_off_and_what_it_sent_before_counts() {
    let mut feed = Feed::ahead(10);
    for (sent, malformed) in [(&[1, -4, 2][..], 1), (&[1, -3, 0, 2], 2), (&[1, i64::MIN], 3)] {
        let mut writer = feed.connect();
        writer.say(sent);
        assert_eq!(writer.last(), -2);
        assert_eq!(feed.use_as_they_come(1), [1]);
        assert_eq!(feed.count(|counts| &counts.malformed), malformed);
    }
    assert_eq!(feed.connect().ask(&[-2]), 10);
    assert_eq!(feed.count(|counts| &counts.torn), 0);
}

#[test]
fn endless_garbage_ends_soon() {
    let mut feed = Feed::ahead(10);
    let mut writer = feed.connect();
    let garbage: Vec<u8> = (0..1 << 16).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let sent = thread::spawn(move || while writer.0.write_all(&garbage).is_ok() {});
    eventually("it is cut off", || {
        let taken = feed.take().len();
        feed.use_up(taken);
        sent.is_finished()
    });
    assert_eq!(feed.connect().ask(&[-2]), 10);
}

#[test]
fn a_writer_that_never_reads_holds_up_itself_alone() {
    let feed = Feed::ahead(10);
    let deaf = feed.connect();
    deaf.0.set_nonblocking(true).unwrap();
    let mut requests = &deaf.0;
    let many: Vec<u8> = std::iter::repeat_n((-2_i64).to_le_bytes(), 1000).flatten().collect();
    let mut refused = 0;
    eventually("nothing more is taken from it", || {
        refused = if requests.write(&many).is_ok() { 0 } else { refused + 1 };
        refused == 10
    });
    drop(deaf);
    let mut next = feed.connect();
    // The requests that were still in the socket go nowhere.
    assert_eq!(next.ask(&[-2]), 10);
}

#[test]
fn a_flood_of_connections_leaves_the_writer_its_place() {
    let mut feed = Feed::ahead(10);
    let mut writer = feed.connect();
    assert_eq!(writer.ask(&[-2]), 10);
    let flood: Vec<_> = (0..100).map(|_| feed.connect()).collect();
    for value in 0..100 {
        writer.say(&[value]);
        assert_eq!(feed.use_as_they_come(1), [value]);
    }
    assert!(flood.into_iter().all(|other| other.last() == -1));
    assert_eq!(feed.count(|counts| &counts.refused), 100);
}

#[test]
fn when_the_run_is_over_the_writer_is_told() {
    let feed = Feed::ahead(10);
    let mut writer = feed.connect();
    assert_eq!(writer.ask(&[-2]), 10);
    drop(feed);
    assert_eq!(writer.last(), -3);
}

#[test]
fn the_run_ends_whatever_the_writer_does() {
    let feed = Feed::ahead(1);
    let mut writer = feed.connect();
    writer.say(&(0..1000).collect::<Vec<_>>());
    writer.say(&[-3, 1]);
    drop(feed);
    assert_eq!(writer.last(), -3);
}

#[test]
fn a_lead_in_time_begins_with_a_few_and_grows_with_what_packets_ask_for() {
    let mut feed = Feed::of(Lead::Span(Duration::from_secs(3600), 1000), false);
    let mut writer = feed.connect();
    assert_eq!(writer.ask(&[-2]), 64);
    // Packets that found nothing asked, too.
    feed.used = 500;
    feed.turn();
    assert_eq!(writer.ask(&[-2]), 500);
    feed.used = 5000;
    feed.turn();
    assert_eq!(writer.ask(&[-2]), 1000);
}

#[test]
fn a_changed_lead_takes_effect() {
    let feed = Feed::ahead(100);
    let mut writer = feed.connect();
    assert_eq!(writer.ask(&[-2]), 100);
    feed.outlet.handle().set_lead(Lead::Values(7));
    assert_eq!(writer.ask(&[-2]), 7);
    feed.outlet.handle().set_lead(Lead::Values(1_000_000));
    assert_eq!(writer.ask(&[-2]), 100, "what the ring has room for");
}

/// The processor time of the calling thread's process that its feed's thread has had, in nanoseconds.
fn busy(thread: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).unwrap();
    stat.split_whitespace().next().unwrap().parse().unwrap()
}

fn threads() -> Vec<String> {
    let entries = std::fs::read_dir("/proc/self/task").unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// A thread that spins would be found out only where the machine has time for it; one that sleeps always passes.
#[test]
fn the_thread_sleeps_whatever_it_waits_for() {
    let sleeps = |what: &str, set: &mut dyn FnMut(&mut Feed) -> Vec<Talk>| {
        let before = threads();
        let mut feed = Feed::ahead(10);
        let writers = set(&mut feed);
        // Other tests start threads meanwhile; the least busy of the new ones is no busier than ours.
        thread::sleep(std::time::Duration::from_millis(20));
        let new: Vec<_> = threads().into_iter().filter(|thread| !before.contains(thread)).collect();
        let begin: Vec<_> = new.iter().map(|thread| busy_or_ended(thread)).collect();
        thread::sleep(std::time::Duration::from_millis(60));
        let end = new.iter().map(|thread| busy_or_ended(thread));
        let least = begin.into_iter().zip(end).filter_map(|(begin, end)| Some(end? - begin?)).min();
        drop(writers);
        assert!(least.is_none_or(|spent| spent < 20_000_000), "{what}: {least:?} ns of 60 ms");
    };
    sleeps("nobody", &mut |_| Vec::new());
    sleeps("a silent writer", &mut |feed| vec![feed.connect()]);
    sleeps("a full lead", &mut |feed| {
        let mut writer = feed.connect();
        writer.say(&[1; 100]);
        vec![writer]
    });
    sleeps("a full lead, a writer that is gone and its successor", &mut |feed| {
        feed.connect().say(&[1; 100]);
        vec![feed.connect()]
    });
    sleeps("a request for room", &mut |feed| {
        let mut writer = feed.connect();
        writer.say(&[1; 10]);
        writer.say(&[-3, 10]);
        vec![writer]
    });
}

fn busy_or_ended(thread: &str) -> Option<u64> {
    std::fs::exists(format!("/proc/self/task/{thread}/schedstat")).unwrap().then(|| busy(thread))
}

#[test]
fn a_fast_writer_and_fast_packets_lose_nothing() {
    const VALUES: i64 = 300_000;
    let mut feed = Feed::ahead(4096);
    let mut writer = feed.connect();
    let sent = thread::spawn(move || {
        for begin in (0..VALUES).step_by(1000) {
            writer.say(&(begin..begin + 1000).collect::<Vec<_>>());
        }
    });
    let mut next = 0;
    while next < VALUES {
        let taken = feed.take();
        feed.use_up(taken.len());
        assert!(taken.iter().copied().eq(next..next + taken.len() as i64), "at {next}");
        next += taken.len() as i64;
        if taken.is_empty() {
            thread::yield_now();
        }
    }
    sent.join().unwrap();
}

fn question(number: u64, patience: Duration) -> Asked {
    let mut record = [0; QUESTION];
    record[..8].copy_from_slice(&(-4_i64).to_le_bytes());
    record[8..16].copy_from_slice(&number.to_le_bytes());
    Asked { number, until: later(clock_monotonic(), patience), record }
}

const LONG: Duration = Duration::from_secs(3600);

impl Talk {
    /// Hears a question; gives its number.
    fn hear_question(&mut self) -> i64 {
        let mut record = [0; QUESTION];
        self.0.read_exact(&mut record).unwrap();
        assert_eq!(record[..8], (-4_i64).to_le_bytes());
        i64::from_le_bytes(record[8..16].try_into().unwrap())
    }
}

impl Feed {
    fn ask(&mut self, number: u64, patience: Duration) {
        assert!(self.outlet.ask(question(number, patience)));
        self.outlet.call();
    }
}

#[test]
fn a_two_way_writer_answers_what_it_is_asked_and_the_loop_is_called() {
    let mut feed = Feed::of(Lead::Values(16), true);
    let mut writer = feed.connect();
    feed.ask(0, LONG);
    feed.ask(1, LONG);
    assert_eq!((writer.hear_question(), writer.hear_question()), (0, 1));
    assert_eq!(writer.ask(&[-2]), 2, "questions without an answer");
    writer.say(&[100]);
    assert_eq!(wait(&mut [Waiting::readable(&feed.caller)], None).unwrap(), 1);
    assert_eq!(feed.use_as_they_come(1), [100]);
    writer.say(&[-1]);
    assert_eq!(feed.use_as_they_come(1), [-1]);
    // Nobody asked for this.
    writer.say(&[7]);
    assert_eq!(writer.last(), -2);
}

#[test]
fn questions_of_a_writer_that_is_gone_go_to_the_next_or_are_closed() {
    let mut feed = Feed::of(Lead::Values(16), true);
    let mut writer = feed.connect();
    feed.ask(0, Duration::ZERO);
    // It is over before anybody can be told.
    feed.ask(1, LONG);
    feed.ask(2, LONG);
    assert_eq!((writer.hear_question(), writer.hear_question()), (1, 2));
    drop(writer);
    let mut next = feed.connect();
    assert_eq!((next.hear_question(), next.hear_question()), (1, 2));
    next.say(&[11, 22]);
    assert_eq!(feed.use_as_they_come(3), [0, 11, 22], "the first is an answer that comes too late");
    assert_eq!(feed.count(|counts| &counts.unanswered), 1);
}
