//! Every case, in a guest kernel. `make test-kernel` runs this.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use narrows_guest::kernel::GuestKernel;
use narrows_guest::machine::Machine;
use narrows_oracle::case::Case;
use narrows_oracle::folder::{kernel_rows, left_out, outcome};
use narrows_oracle::{cases, corpus, table};

/// Guests that run at once: each needs a processor.
const GUESTS: usize = 2;

/// `NARROWS_CASE=filter-edits,ets` runs these cases alone.
#[test]
#[ignore = "needs guest kernel"]
fn the_kernels_disciplines_and_ours_are_as_near_as_they_should_be() {
    let folder = empty_folder("oracles");
    let narrows = narrows();
    let only = env::var("NARROWS_CASE").ok();
    let mut cases = cases::all();
    cases.retain(|case| only.as_ref().is_none_or(|only| only.split(',').any(|name| name == case.name)));
    let place = narrows.to_str().expect("its path is text");
    in_guests(&folder, &narrows, &cases, &["guest", FOLDER, place]);

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

/// Scripts of `narrows-scenario/tests/corpus/tc.txt` that are `exact` there. `NARROWS_CORPUS=all` runs all that both accept, and
/// prints what differs; with `NARROWS_BLESS=1` it also marks anew which ones are exact.
#[test]
#[ignore = "needs guest kernel"]
fn public_scripts_mean_to_us_what_they_mean_to_the_kernel() {
    let all = env::var_os("NARROWS_CORPUS").is_some();
    let folder = empty_folder("corpus");
    let narrows = narrows();
    let scripts = corpus::scripts().into_iter().filter(|script| all || script.meaning == "exact");
    let cases: Vec<(usize, Case)> = scripts
        .flat_map(|script| corpus::cases(&script).into_iter().map(move |case| (script.line, case)))
        .collect();
    let (lines, cases): (Vec<usize>, Vec<Case>) = cases.into_iter().unzip();
    in_guests(&folder, &narrows, &cases, &["public", FOLDER]);
    let (mut differ, mut exact) = (Vec::new(), BTreeSet::from_iter(lines.iter().copied()));
    for (line, case) in lines.iter().zip(&cases) {
        let (alike, said) = match kernel_rows(&folder, case) {
            Ok(rows) => (rows.iter().all(|row| row.holds), corpus::words(&rows)),
            Err(error) => (false, error),
        };
        if all {
            println!("{}\t{said}\t{}\t{}", case.name, case.explanation, case.tc.join("; "));
        }
        if !alike {
            differ.push(format!("{}: {said}", case.name));
            exact.remove(line);
        }
    }
    println!("{} of {} cases are exact", cases.len() - differ.len(), cases.len());
    if all && env::var_os("NARROWS_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../narrows-scenario/tests/corpus/tc.txt");
        fs::write(path, corpus::marked(&exact)).expect("the corpus can be written");
    }
    assert!(all || differ.is_empty(), "{}", differ.join("\n"));
}

/// Stands for the folder in a guest's command.
const FOLDER: &str = "FOLDER";

fn narrows() -> PathBuf {
    env::var_os("NARROWS_PROGRAM").map(PathBuf::from).expect("NARROWS_PROGRAM names the program")
}

fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target directory can be written");
    folder
}

/// Boots guests that do this with their share of the cases. Neighbours are of a kind and take about as long: each guest gets
/// every other one.
fn in_guests(folder: &Path, narrows: &Path, cases: &[Case], what: &[&str]) {
    let share = |guest| cases.iter().skip(guest).step_by(GUESTS).map(|case| case.name);
    thread::scope(|scope| {
        let boot = |names| scope.spawn(move || boot(folder, narrows, what, names));
        // Without names, a guest would run all.
        let shares =
            (0..GUESTS).map(|guest| share(guest).collect()).filter(|names: &Vec<&str>| !names.is_empty());
        let guests: Vec<_> = shares.map(boot).collect();
        guests.into_iter().for_each(|guest| guest.join().expect("a guest has run its cases"));
    });
}

/// Boots a guest that does this with these cases.
fn boot(folder: &Path, narrows: &Path, what: &[&str], names: Vec<&str>) {
    let kernel =
        GuestKernel::find(env::var_os("NARROWS_KERNEL").as_deref()).unwrap_or_else(|error| panic!("{error}"));
    let own = OsString::from(env!("CARGO_BIN_EXE_narrows-oracle"));
    let what = what.iter().map(|word| match *word {
        FOLDER => folder.as_os_str().to_owned(),
        word => OsString::from(word),
    });
    let command = [own].into_iter().chain(what).chain(names.iter().map(OsString::from)).collect();
    let mut machine =
        Machine::new(narrows.to_owned(), kernel.path, command).expect("there is a current folder");
    machine.writable.push(folder.to_owned());
    let output = machine.output(b"").unwrap_or_else(|error| panic!("{error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.ended.status, 0, "the guest: {said}{:?}", output.ended.remarks);
}
