//! The program of the oracle tests: the part that runs in the guest, and the comparison.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use narrows_oracle::case::Case;
use narrows_oracle::compare::Outcome;
use narrows_oracle::folder::{leave_kernel, leave_out, left_out, observed, outcome};
use narrows_oracle::guest::{lack, observe, receive_live, send_live};
use narrows_oracle::{cases, corpus, model, table};

const USAGE: &str = "narrows-oracle guest FOLDER NARROWS [CASE…]   in a guest: runs cases, and leaves what was observed in FOLDER
narrows-oracle compare FOLDER [CASE…]         holds that beside the engine in virtual time
narrows-oracle model FOLDER CASE              prints what the engine makes of it, as JSON
narrows-oracle plan CASE                      prints its datagrams: nanoseconds, flow, traffic class, bytes
narrows-oracle list                           the names of the cases
narrows-oracle public FOLDER CASE…            in a guest: runs cases of public scripts through the kernel alone";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match &words[..] {
        ["guest", folder, narrows, names @ ..] => guest(Path::new(folder), Path::new(narrows), names),
        ["compare", folder, names @ ..] => compare_all(Path::new(folder), names),
        ["model", folder, name] => model_only(Path::new(folder), name),
        ["plan", name] => one(name).map(|case| {
            for sent in case.traffic {
                println!("{} {} {} {}", sent.at, sent.flow, sent.traffic_class, sent.length);
            }
            true
        }),
        ["list"] => {
            cases::all().iter().for_each(|case| println!("{}", case.name));
            Ok(true)
        }
        ["public", folder, names @ ..] => public(Path::new(folder), names),
        ["send", name, output] => one(name)
            .and_then(|case| send_live(&case, PathBuf::from(output)).map_err(|error| error.to_string()))
            .map(|()| true),
        ["receive", what, output] => receive_live(PathBuf::from(output), *what == "segments")
            .map(|()| true)
            .map_err(|error| error.to_string()),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("narrows-oracle: {error}");
            ExitCode::from(2)
        }
    }
}

fn one(name: &str) -> Result<Case, String> {
    cases::all().into_iter().find(|case| case.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> String {
    format!("no case is called `{name}`")
}

fn chosen(names: &[&str]) -> Result<Vec<Case>, String> {
    match names {
        [] => Ok(cases::all()),
        names => {
            let all = cases::all();
            let of = |name: &&str| all.iter().find(|case| case.name == *name).cloned();
            names.iter().map(|name| of(name).ok_or_else(|| unknown(name))).collect()
        }
    }
}

fn guest(folder: &Path, narrows: &Path, names: &[&str]) -> Result<bool, String> {
    for case in chosen(names)? {
        let failed = |error| format!("{}: {error}", case.name);
        if let Some(said) = lack(&case).map_err(failed)? {
            leave_out(folder, &case, &said)?;
            continue;
        }
        let observed = observe(&case, narrows, folder).map_err(failed)?;
        let json = serde_json::to_vec(&observed).map_err(|error| error.to_string())?;
        let path = folder.join(format!("{}.json", case.name));
        fs::write(&path, json).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(true)
}

fn model_only(folder: &Path, name: &str) -> Result<bool, String> {
    let case = one(name)?;
    let observed = observed(folder, &case)?;
    let model = model::run(&case, &observed.kernel.sent).map_err(|error| error.to_string())?;
    println!("{}", serde_json::to_string(&model).map_err(|error| error.to_string())?);
    Ok(true)
}

fn compare_all(folder: &Path, names: &[&str]) -> Result<bool, String> {
    let (out, cases): (Vec<Case>, _) =
        chosen(names)?.into_iter().partition(|case| left_out(folder, case).is_some());
    out.iter().filter_map(|case| left_out(folder, case)).for_each(|why| eprintln!("{why}"));
    let outcomes = cases.iter().map(|case| outcome(folder, case)).collect::<Result<Vec<_>, _>>()?;
    print!("{}\n{}", table::markdown(&outcomes), table::configurations(&outcomes));
    Ok(outcomes.iter().all(Outcome::holds))
}

fn public(folder: &Path, names: &[&str]) -> Result<bool, String> {
    let cases: Vec<Case> = corpus::scripts().iter().flat_map(corpus::cases).collect();
    for case in cases.iter().filter(|case| names.contains(&case.name)) {
        leave_kernel(folder, case)?;
    }
    Ok(true)
}
