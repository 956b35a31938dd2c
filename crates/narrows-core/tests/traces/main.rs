//! What must hold of links that follow a trace: rates against exact arithmetic, opportunities against mahimahi's rule, and
//! what the queue is told.

mod mahimahi;
mod queue;
mod rates;
mod wire;
