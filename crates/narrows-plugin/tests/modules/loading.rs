//! What is found when a module is loaded, in words.

use narrows_core::Time;
use narrows_core::sched::{FlowConfig, Refused, Server, Weight};
use narrows_plugin::{Module, abi};

use crate::support::{load, module, text};

#[track_caller]
fn refused(text: &str, says: &str) {
    let error = load(text).expect_err("it is wrong").to_string();
    assert!(error.contains(says), "{says}\n{error}");
}

#[test]
fn what_is_no_module_is_refused() {
    let error = Module::new(b"[hosts.a]").unwrap_err().to_string();
    assert!(error.starts_with("this is no WebAssembly module that can be used: "), "{error}");
    let error = Module::new(&vec![0; abi::LONGEST_MODULE + 1]).unwrap_err().to_string();
    assert_eq!(error, "the module has 4194305 bytes, the maximum is 4194304");
    // Cut off anywhere, or with any byte changed, it is refused or it is a module; it never breaks anything.
    let bytes = wat::parse_str(text("", &[])).unwrap();
    for end in 0..bytes.len() {
        assert!(Module::new(&bytes[..end]).is_err(), "{end}");
        let mut changed = bytes.clone();
        changed[end] ^= 0x55;
        let _ = Module::new(&changed).and_then(|module| module.scheduler(&[], abi::FUEL));
    }
}

#[test]
fn nothing_comes_from_outside() {
    refused(
        &text(
            "(import \"wasi_snapshot_preview1\" \"clock_time_get\" (func (param i32 i64 i32) (result i32)))",
            &[],
        ),
        "the module imports `wasi_snapshot_preview1.clock_time_get`: a scheduler gets nothing from outside",
    );
    refused(
        &text("", &[("other", "(result f64) (f64.const 0.5)")]),
        "this is no WebAssembly module that can be used: ",
    );
}

#[test]
fn functions_have_names_and_types() {
    refused(&text("", &[("select", "")]), "the module does not export the function `select(i64) -> i64`");
    refused(
        &text("", &[("sent", "(param i64)")]),
        "the module's `sent` is `sent(i64)`, expected `sent(i64, i32, i32, i32, i32)`",
    );
    refused(
        &text("", &[("set_rate", "(param i64 i32)")]),
        "the module's `set_rate` is `set_rate(i64, i32)`, expected `set_rate(i64, i64)`",
    );
    refused(
        &text("(global (export \"leave\") i32 (i32.const 1))", &[]),
        "the module's `leave` is `no function`",
    );
    refused(
        &text("", &[("parameter_burst", "(param i32) (result i32) (i32.const 0)")]),
        "the module's `parameter_burst` is `parameter_burst(i32) -> i32`, expected `parameter_burst(i64) -> i32`",
    );
}

#[test]
fn another_version_is_refused() {
    refused(
        &text("", &[("abi_version", "(result i32) (i32.const 2)")]),
        "the module has version 2 of the interface, this is version 1",
    );
    // It can never say.
    refused(
        &text("", &[("abi_version", "(result i32) (loop $again (br $again)) (i32.const 1)")]),
        "the module failed when it was loaded, in `abi_version`: ",
    );
    refused(
        &text("(func $begin unreachable) (start $begin)", &[]),
        "the module failed when it was loaded, in `start`: ",
    );
}

#[test]
fn memory_is_bounded() {
    let more = |pages: u32| text("", &[]).replace("\"memory\") 1)", &format!("\"memory\") {pages})"));
    assert!(load(&more(256)).is_ok(), "16 MiB");
    refused(&more(257), "the module failed when it was loaded, in `start`: ");
    // What grows later gets no more, and is told so.
    let grows = [("parameter_pages", "(param i64) (result i32) (memory.grow (i32.wrap_i64 (local.get 0)))")];
    let grows = module(&grows);
    let with = |pages: i64| grows.scheduler(&[("pages".into(), pages)], abi::FUEL).map(|_| ());
    let error = with(256).unwrap_err().to_string();
    assert_eq!(error, "the module refuses `pages = 256`, with code -1");
}

#[test]
fn parameters_are_the_modules_own() {
    let burst = ("parameter_burst", "(param i64) (result i32) (i64.gt_s (local.get 0) (i64.const 9))");
    let module = module(&[burst, ("parameter_other", "(param i64) (result i32) unreachable")]);
    assert_eq!(module.parameters(), ["burst", "other"]);
    let with = |name: &str, value| module.scheduler(&[(name.into(), value)], abi::FUEL).map(|_| ());
    assert_eq!(with("burst", 9), Ok(()));
    assert_eq!(with("burst", 10).unwrap_err().to_string(), "the module refuses `burst = 10`, with code 1");
    let error = with("bursts", 1).unwrap_err().to_string();
    assert_eq!(error, "the module has no parameter `bursts`: it has `burst`, `other`");
    let error = with("other", 1).unwrap_err().to_string();
    assert!(error.starts_with("the module failed when it was loaded, in `parameter_other`: "), "{error}");
}

#[test]
fn flows_can_be_refused() {
    let join = (
        "join",
        "(param i32 i32 i32 i32) (result i32) (i32.mul (i32.gt_u (local.get 1) (i32.const 5)) (i32.const 7))",
    );
    let weight = ("set_weight", "(param i64 i32 i32) (result i32) (i32.gt_u (local.get 2) (i32.const 5))");
    let broken = ("join", "(param i32 i32 i32 i32) (result i32) unreachable");
    let mut server = Server::new(module(&[broken]).scheduler(&[], abi::FUEL).unwrap());
    let error = server.join(FlowConfig::default()).unwrap_err().to_string();
    assert_eq!(error, "the plugin failed in `join`: it trapped: it gave up (`unreachable`)");
    let mut server = Server::new(module(&[join, weight]).scheduler(&[], abi::FUEL).unwrap());
    let of = |weight| FlowConfig { weight: Weight::new(weight).unwrap(), ..FlowConfig::default() };
    let flow = server.join(of(5)).unwrap();
    assert_eq!(server.join(of(6)), Err(Refused::Declined(7)));
    assert_eq!(server.set_weight(Time::ZERO, flow, Weight::new(6).unwrap()), Err(Refused::Declined(1)));
    assert_eq!(server.set_weight(Time::ZERO, flow, Weight::new(2).unwrap()), Ok(()));
    assert_eq!(Refused::Declined(7).to_string(), "the plugin refuses the flow, with code 7");
}
