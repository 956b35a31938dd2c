//! Shapers: a token bucket, and trees of classes.

use schemars::JsonSchema;

use super::{Class, DefaultClass, Filter, Match, OneOrMore, Scheduler};
use crate::schema::queue::Queue;
use crate::schema::{Bound, Rate, Size, Time};

/// A token bucket.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(in crate::schema) struct TbfScheduler {
    /// A token bucket.
    #[schemars(rename = "type")]
    kind: TbfType,
    /// Tokens come at this rate.
    rate: Rate,
    /// How many bytes of them the bucket holds.
    burst: Size,
    /// How long a packet may wait for tokens, of which the bound follows.
    latency: Option<Time>,
    /// How much may wait in all.
    bound: Option<Bound>,
    /// No burst is faster than this.
    peakrate: Option<Rate>,
    /// The longest packet, which the bucket of the peak rate holds; 1500 bytes.
    mtu: Option<Size>,
    /// What the shortest packet counts; nothing.
    mpu: Option<Size>,
    /// One class, for what stands in it.
    #[schemars(length(min = 1, max = 1))]
    classes: Option<Vec<Class>>,
    /// Which class a packet is in, in the order in which they are tried, where the classes do not say it by `match`.
    filters: Option<Vec<Filter>>,
    /// What becomes of packets of no class.
    default: Option<DefaultClass>,
}

/// A tree of token buckets, which borrow from those above.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(in crate::schema) struct HtbScheduler {
    /// A tree of token buckets.
    #[schemars(rename = "type")]
    kind: HtbType,
    /// How much may wait in all.
    bound: Option<Bound>,
    /// The classes; one stands before those below it.
    #[schemars(length(min = 1))]
    classes: Vec<HtbClass>,
    /// Which class a packet is in, in the order in which they are tried, where the classes do not say it by `match`.
    filters: Option<Vec<Filter>>,
    /// What becomes of packets of no class.
    default: Option<DefaultClass>,
}

/// A tree of classes that are kept to their rates by their idle times.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(in crate::schema) struct CbqScheduler {
    /// Class based queueing.
    #[schemars(rename = "type")]
    kind: CbqType,
    /// How much may wait in all.
    bound: Option<Bound>,
    /// How fast the wire is, by which idle times are reckoned.
    bandwidth: Rate,
    /// The length of a usual packet.
    avpkt: Size,
    /// The classes; one stands before those below it.
    #[schemars(length(min = 1))]
    classes: Vec<CbqClass>,
    /// Which class a packet is in, in the order in which they are tried, where the classes do not say it by `match`.
    filters: Option<Vec<Filter>>,
    /// What becomes of packets of no class.
    default: Option<DefaultClass>,
}

/// A class of a tree of token buckets.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct HtbClass {
    /// Unique in its scheduler.
    name: String,
    /// The class above it.
    parent: Option<String>,
    /// What belongs to it, where no class is below it.
    #[schemars(rename = "match")]
    matches: Option<OneOrMore<Match>>,
    /// What it gets whenever it has packets.
    rate: Rate,
    /// What it gets at most, by borrowing; its rate.
    ceil: Option<Rate>,
    /// How much it may send at once by its rate; 10 ms of that.
    burst: Option<Size>,
    /// The same by its ceiling.
    cburst: Option<Size>,
    /// Who is served first of those that may send alike: 0 before 7; 0.
    #[schemars(range(min = 0, max = 7))]
    priority: Option<u8>,
    /// How much it sends in its turn; a tenth of what its rate is in a second.
    quantum: Option<Size>,
    /// What the shortest packet counts; nothing.
    mpu: Option<Size>,
    /// Where its packets wait; like the link's queue if it is not given.
    queue: Option<Queue>,
    /// Another scheduler in place of a queue.
    scheduler: Option<Box<Scheduler>>,
    /// NetEm's single queue in place of a queue, in its words.
    netem: Option<String>,
}

/// A class of class based queueing.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct CbqClass {
    /// Unique in its scheduler.
    name: String,
    /// The class above it.
    parent: Option<String>,
    /// What belongs to it, where no class is below it.
    #[schemars(rename = "match")]
    matches: Option<OneOrMore<Match>>,
    /// What it may send.
    rate: Rate,
    /// Who is served first: 1 before 8; 8.
    #[schemars(range(min = 1, max = 8))]
    priority: Option<u8>,
    /// How much a class of the mean weight sends in its turn; one and a half of `avpkt`.
    allot: Option<Size>,
    /// The length of its usual packet; that of the whole.
    avpkt: Option<Size>,
    /// Its share in a turn relative to others of its priority; its rate in bytes a second.
    #[schemars(range(min = 1))]
    weight: Option<u32>,
    /// Whether it may not borrow; no.
    bounded: Option<bool>,
    /// Whether it does not lend; no.
    isolated: Option<bool>,
    /// Whether its rate is not watched; no.
    exempt: Option<bool>,
    /// How many packets it may send at once after it was idle; 20.
    #[schemars(range(min = 1))]
    maxburst: Option<u32>,
    /// How many packets it sends together once it has waited; 0, one by one.
    #[schemars(range(min = 1))]
    minburst: Option<u32>,
    /// How far below zero the average of its idle time may fall; any depth.
    minidle: Option<Time>,
    /// The average forgets by 2 to the minus this at each packet; 5.
    #[schemars(range(min = 0, max = 31))]
    ewma: Option<u8>,
    /// What the shortest packet counts; nothing.
    mpu: Option<Size>,
    /// Where its packets wait; like the link's queue if it is not given.
    queue: Option<Queue>,
    /// Another scheduler in place of a queue.
    scheduler: Option<Box<Scheduler>>,
    /// NetEm's single queue in place of a queue, in its words.
    netem: Option<String>,
}

names! {
    /// A token bucket.
    TbfType { Tbf }
    /// A tree of token buckets.
    HtbType { Htb }
    /// Class based queueing.
    CbqType { Cbq }
}
