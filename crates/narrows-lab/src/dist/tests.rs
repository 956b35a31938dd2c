mod estimates;
mod tables;
