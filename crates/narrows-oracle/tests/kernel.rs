//! Every case, in a guest kernel. `make test-kernel` runs this.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use narrows_guest::kernel::GuestKernel;
use narrows_guest::machine::Machine;
use narrows_oracle::folder::{left_out, outcome};
use narrows_oracle::{cases, table};

/// Guests that run at once: each needs a processor.
const GUESTS: usize = 2;

#[test]
#[ignore = "needs guest kernel"]
fn the_kernels_disciplines_and_ours_are_as_near_as_they_should_be() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("oracles");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target directory can be written");
    let narrows =
        env::var_os("NARROWS_PROGRAM").map(PathBuf::from).expect("NARROWS_PROGRAM names the program");
    let cases = cases::all();
    // Neighbours are of a kind and take about as long: each guest gets every other one.
    let names: Vec<Vec<&str>> = (0..GUESTS)
        .map(|guest| cases.iter().skip(guest).step_by(GUESTS).map(|case| case.name).collect())
        .collect();
    thread::scope(|scope| {
        let guests: Vec<_> =
            names.iter().map(|names| scope.spawn(|| boot(&folder, &narrows, names))).collect();
        guests.into_iter().for_each(|guest| guest.join().expect("a guest has run its cases"));
    });

    let (out, cases): (Vec<_>, Vec<_>) =
        cases.into_iter().partition(|case| left_out(&folder, case).is_some());
    let outcomes: Vec<_> =
        cases.iter().map(|case| outcome(&folder, case).unwrap_or_else(|error| panic!("{error}"))).collect();
    let text = format!("{}\n{}", table::markdown(&outcomes), table::configurations(&outcomes));
    fs::write(folder.join("oracles.md"), &text).expect("it could be written before");
    fs::write(folder.join("oracles.json"), table::json(&outcomes).expect("plain values"))
        .expect("it could be written before");
    println!("{}\nthe same in {}", table::markdown(&outcomes), folder.display());
    out.iter().filter_map(|case| left_out(&folder, case)).for_each(|why| println!("{why}"));
    let exceeded: Vec<&str> =
        outcomes.iter().filter(|outcome| !outcome.holds()).map(|outcome| outcome.case).collect();
    assert!(exceeded.is_empty(), "farther apart than they may be: {exceeded:?}");
}

/// Boots a guest that runs these cases.
fn boot(folder: &Path, narrows: &Path, names: &[&str]) {
    let kernel =
        GuestKernel::find(env::var_os("NARROWS_KERNEL").as_deref()).unwrap_or_else(|error| panic!("{error}"));
    let own = [env!("CARGO_BIN_EXE_narrows-oracle"), "guest"].map(OsString::from);
    let places = [folder, narrows].map(|path| path.as_os_str().to_owned());
    let command = own.into_iter().chain(places).chain(names.iter().map(OsString::from)).collect();
    let mut machine =
        Machine::new(narrows.to_owned(), kernel.path, command).expect("there is a current folder");
    machine.writable.push(folder.to_owned());
    let output = machine.output(b"").unwrap_or_else(|error| panic!("{error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.ended.status, 0, "the guest: {said}{:?}", output.ended.remarks);
}
