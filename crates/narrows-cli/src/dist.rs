//! `narrows dist`: fits, makes and plots distributions of delays.

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
    /// Fit named distributions to measured delays and rank them
    Fit(fit::Fit),
    /// Make a NetEm .dist table or a scenario entry from delays or a distribution
    Make(make::Make),
    /// Plot measured delays beside distributions: histogram, CDF, tail, quantiles
    Plot(plot::Plot),
}

/// Runs a subcommand.
pub(crate) fn dist(dist: &Dist) -> Result<u8, Failure> {
    match dist {
        Dist::Fit(fit) => fit::fit(fit),
        Dist::Make(make) => make::make(make),
        Dist::Plot(plot) => plot::plot(plot),
    }
}
