mod estimates;
mod fits;
mod tables;
