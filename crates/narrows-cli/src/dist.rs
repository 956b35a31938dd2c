//! `narrows dist`: distributions of delays, fitted, made, drawn.

mod fit;
mod input;
mod make;
mod picture;
mod plot;

use clap::Subcommand;

use crate::output::Failure;

/// What is done with a distribution.
#[derive(Debug, Subcommand)]
pub(crate) enum Dist {
    /// Fit named distributions to measured delays and say which is nearest
    Fit(fit::Fit),
    /// Make NetEm's .dist table or a scenario entry from measured delays or a named distribution
    Make(make::Make),
    /// Draw measured delays beside distributions: histogram, distribution function, tail, quantiles
    Plot(plot::Plot),
}

/// Runs one of them.
pub(crate) fn dist(dist: &Dist) -> Result<u8, Failure> {
    match dist {
        Dist::Fit(fit) => fit::fit(fit),
        Dist::Make(make) => make::make(make),
        Dist::Plot(plot) => plot::plot(plot),
    }
}
