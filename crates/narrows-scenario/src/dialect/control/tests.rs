use super::pattern::fits;
use super::*;
use crate::dialect::shell;
use crate::dialect::variables::Expanded;

/// The commands that a script comes to, or its first problem.
fn commands(text: &str) -> Result<Vec<String>, String> {
    let pieces = shell::pieces(text).unwrap();
    let mut all = Vec::new();
    let problems = run(text, pieces, &mut Variables::default(), &mut |piece, variables| {
        let rest = variables.assign(text, piece.span.clone()).unwrap();
        let words = variables.words(text, rest).unwrap_or_default();
        let words: Vec<&str> = words.iter().map(Expanded::text).collect();
        all.extend((!words.is_empty()).then(|| words.join(" ")));
        if words.first() == Some(&"exit") { Next::End } else { Next::Command }
    });
    match problems.into_iter().next() {
        Some(problem) => Err(crate::ScenarioError::new("", "", vec![problem]).to_string()),
        None => Ok(all),
    }
}

#[test]
fn the_first_pattern_that_fits_is_run() {
    for (text, expected) in [
        ("case b in a) x;; b) y; z;; *) w;; esac", &["y", "z"][..]),
        (
            "A=up\ncase \"$A\" in\n  start|up)\n    x\n    y ;; # or\n  # down\n  down) z\n;;\nesac\nw",
            &["x", "y", "w"],
        ),
        ("case eth0 in wlan*) x;; et?0) y;; esac", &["y"]),
        ("case a in (b) x;; (a) case c in c) y;; esac;; esac\nz", &["y", "z"]),
        ("case $1 in del) x;; *) y;; esac", &["y"]),
        ("case \"${1:-status}\" in start) x;; status) y;; esac", &["y"]),
        ("case $# in 0) x;; *) y;; esac", &["x"]),
        ("case a in b) x;; esac\ny", &["y"]),
        ("f() { case $1 in on) x $2;; esac; }\nf on 3\nf off 4", &["x 3"]),
        ("case $(uname) in Linux) echo a;; *) exit;; esac\nx", &["x"]),
        // A command is assumed to succeed.
        ("x || { echo a; exit 1; }\ny", &["x", "y"]),
        ("die() { echo a; exit 1; }\nx || die b\ny", &["x", "y"]),
        ("x || {\n  y\n  exit 1\n}\nz && w", &["x", "z", "w"]),
        ("f() { x || return 1; y; }\nf\nz", &["x", "y", "z"]),
        ("case a in a) x || { echo b; exit 1; }\n y;; esac\nz", &["x", "y", "z"]),
        ("case a in b) ;; a) x;; esac", &["x"]),
        // Of functions that call one another, too.
        ("D=eth0\nf() { local D; D=eth9; x $D; }\nf\ny $D", &["x eth9", "y eth0"]),
        ("f() { x ${2:-7}; }\ng() { f a; y $2; }\ng 1 99", &["x 7", "y 99"]),
        ("D=5\ndeclare D\nx $D", &["x 5"]),
        // Local variables end with their function.
        ("D=5\nf() { local D=9; x $D; }\nf\ny $D", &["x 9", "y 5"]),
    ] {
        assert_eq!(
            commands(text).as_deref(),
            Ok(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
    for (text, error) in [
        ("x || { tc y; }", "what depends on the success or failure of another command"),
        ("f() { tc y; }\nx || f", "what depends on the success or failure"),
        ("grep -q x y && tc z", "what depends on the success or failure"),
        ("ip x | grep y && exit", "what depends on the success or failure"),
        ("case $(uname) in Linux) x;; esac", "`$(uname)` is a command"),
        ("case a in [ab]) x;; esac", "the pattern `[ab]` is not understood"),
        ("case a in \"*\") x;; esac", "is not understood"),
        ("f() { grep -q x y && tc z; }\nf", "what depends on the success or failure"),
        ("grep -q x y && echo a && tc z", "what depends on the success or failure"),
        ("LANG=C grep -q x y && tc z", "what depends on the success or failure"),
        ("grep -q x y && DEV=a", "what depends on the success or failure"),
        ("grep -q x y && $TC z", "what depends on the success or failure"),
        ("x || { $TC z; }", "what depends on the success or failure"),
        ("case a in a) grep -q x y && tc z;; esac", "what depends on the success or failure"),
        ("case a b) x;; esac\ny", "`case` that is not understood"),
        ("case a in b) x", "`case` that is not understood"),
    ] {
        let found = commands(text).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
}

#[test]
fn conditions_of_arguments_are_those_of_none() {
    for (text, expected) in [
        ("if [ \"$1\" == \"del\" ]; then x; else y; fi", &["y"][..]),
        ("if [ $# -gt 0 ]; then x; else y; fi", &["y"]),
        ("[ -z \"$1\" ] && x\n[ -n \"$2\" ] && y", &["x"]),
        ("A=$1\nif [ -z \"$A\" ]; then A=eth0; fi\nx $A", &["x eth0"]),
        // Where it does not matter, the script goes on.
        ("if [ $# -lt 1 ]; then echo usage; exit 1; fi\nx", &["x"]),
    ] {
        assert_eq!(
            commands(text).as_deref(),
            Ok(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
    let inside = commands("f() { if [ -f \"$1\" ]; then x; fi; }\nf a b").unwrap_err();
    assert!(inside.contains("a condition that depends on more than the script"), "{inside}");
}

#[test]
fn arguments_that_the_script_or_a_call_gives() {
    for (text, expected) in [
        ("f() { if [ $# -gt 1 ]; then x; fi; }\nf a b", &["x"][..]),
        ("set -- a \"b c\"\nx $1 \"$2\" $# $*\ny", &["x a b c 2 a b c", "y"]),
        ("set -- a\nR=\"$2\"\nif [ -z \"$R\" ]; then R=5; fi\nx $R ${3:-7}$4", &["x 5 7"]),
        ("set -- a b c\nshift\nx $1 $#\nshift 2\ny $#", &["x b 2", "y 0"]),
        // Those of a function are its own.
        ("f() { set -- c d; x $1 $2; }\nset -- a\nf b\ny $1 $2 $#", &["x c d", "y a 1"]),
        ("f() { x \"$@\"; }\nf a b", &["x a b"]),
        ("x $(jot 2) $(jot 2 8) `jot - 5 7`", &["x 1 2 8 9 5 6 7"]),
    ] {
        assert_eq!(
            commands(text).as_deref(),
            Ok(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
    // What a program prints may be any number of arguments.
    for text in ["set -- $(ls)\ncase $1 in a) x;; esac", "set -- $(ls)\nif [ $# -gt 0 ]; then x; fi"] {
        assert!(commands(text).is_err(), "{text}");
    }
}

#[test]
fn comparisons_that_are_joined() {
    for (text, expected) in [
        ("if [ a = a ] && [ b != c ]; then x; else y; fi", &["x"][..]),
        ("if [ a = b ] || ! [ b = c ]; then x; else y; fi", &["x"]),
        ("if [ a = b ] && [ -f c ]; then x; else y; fi", &["y"]),
        ("A=\nif [ $A ] || [ -z $A ]; then x; fi\nif [[ -n $A ]]; then y; fi", &["x"]),
        ("x ||\n  echo a\ny", &["x", "echo a", "y"]),
    ] {
        assert_eq!(
            commands(text).as_deref(),
            Ok(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
    for (text, error) in [
        ("if [ a = a ] && [ -f c ]; then x; fi", "a condition that depends on more than the script"),
        ("if [ a = a ]; [ b = b ]; then x; fi", "a condition that depends on more than the script"),
        // A command that is executed is not skipped because nothing follows from it.
        ("if ! ipfw delete 1; then echo a; fi", "a condition that depends on more than the script"),
        ("if x && tc y; then echo a; fi", "a condition that depends on more than the script"),
        ("ipfw list 1 && exit\nx", "what depends on the success or failure"),
        ("kldstat -q && exit\nx", "what depends on the success or failure"),
        ("x || { sysctl net.inet.ip.fw.one_pass=0; }", "what depends on the success or failure"),
        ("x ||\n { ipfw y; }", "what depends on the success or failure"),
    ] {
        let found = commands(text).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
    assert_eq!(commands("echo a && exit\nx").as_deref(), Ok(&["echo a".to_owned(), "exit".to_owned()][..]));
}

#[test]
fn patterns_of_a_shell() {
    for (pattern, word, expected) in [
        ("*", "", true),
        ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*c*e", "abcde", true),
        ("a*c*e", "abcd", false),
        ("a?c", "abc", true),
        ("a?c", "ac", false),
        ("ab*ba", "aba", false),
        ("*a*a*a*a*a*a*a*b", &"a".repeat(5_000), false),
    ] {
        assert_eq!(fits(pattern, word), expected, "{pattern} {word}");
    }
}

#[test]
fn loops_that_count_in_three_calculations() {
    for (text, found) in [
        ("for ((i=2;i<=4;i++)); do a $i; done", &["a 2", "a 3", "a 4"][..]),
        ("N=3\nfor (( i = N; i > 0; i -= 2 ))\ndo\n a $i\ndone; b $i", &["a 3", "a 1", "b -1"]),
        ("for ((i=0; i<2; i++)); do for ((j=0; j<i; j++)); do a $i$j; done; done", &["a 10"]),
        ("for ((i=0; i<0; i++)); do a; done", &[]),
    ] {
        let expected: Vec<String> = found.iter().map(|command| (*command).to_owned()).collect();
        assert_eq!(commands(text).as_deref(), Ok(&expected[..]), "{text}");
    }
    for (text, error) in [
        ("for ((i=0; i<1; i)); do a; done", "`i` assigns no variable"),
        ("for ((i=0; i<x; i++)); do a; done", "`$x` is a variable of a shell that is not set"),
        ("for ((i=0; 1; i++)); do a; done", "more than 1048576 commands"),
        ("for ((i=0; i<1)); do a; done", "`for` without a list"),
    ] {
        let found = commands(text).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
}

#[test]
fn what_runs_in_a_shell_of_its_own_leaves_nothing() {
    for (text, found) in [
        ("A=1; f() { A=2; x $A; exit; }; f | cat\ny $A", &["x 2", "exit", "cat", "y 1"][..]),
        ("for i in 1 2; do x $i; done | cat\ny $i", &["x 1", "x 2", "cat", "y"]),
        ("f() { x; exit; }; f &\ny", &["x", "exit", "y"]),
        ("sleep 5 &\ny", &["y"]),
        // Assignments are of that shell, and the command runs.
        ("A=1\nA=2 &\ny $A", &["y 1"]),
        ("A=1 x &\ny", &["x", "y"]),
        ("{ x; } &\ny &\nz", &["x", "y", "z"]),
    ] {
        let text = text.replace("y $i", "y \"${i:-}\"");
        let expected: Vec<String> = found.iter().map(|command| (*command).to_owned()).collect();
        let commands = commands(&text)
            .map(|all| all.into_iter().map(|one| one.trim_end().to_owned()).collect::<Vec<_>>());
        assert_eq!(commands.as_deref(), Ok(&expected[..]), "{text}");
    }
    for text in
        ["f() { sleep 5; x; }; f &\ny", "{ sleep 5; x; } &\ny", "for i in 1 2; do sleep 1; x; done &\ny"]
    {
        assert!(commands(text).unwrap_err().contains("in the background that wait"), "{text}");
    }
}

#[test]
fn what_depends_on_commands_that_may_fail_is_refused() {
    for text in [
        "[ a = b ] && { echo x; } && tc x",
        "[ a = a ] && grep -q x FILE && tc x",
        "f() { [ -n \"$1\" ]; }\nf && tc x",
        "{ grep -q x y; } && tc x",
        "((i = 0)) && tc x",
        "let i=0 && tc x",
    ] {
        let found = commands(text).unwrap_err();
        assert!(found.contains("depends on the success"), "{text}: {found}");
    }
    for (text, last) in [
        ("f() { x; return 0; }\nf && tc y", "tc y"),
        // What a function says is known.
        ("f() { if [ -z \"$1\" ]; then return 1; fi; x; }\nf && tc y; z", "z"),
        ("f() { if [ -z \"$1\" ]; then return 1; fi; x; }\nf a && tc y", "tc y"),
        ("f() { g; return 1; }\nf || tc y", "tc y"),
        ("f() { return 1; }\nf || exit\nz", "exit"),
        ("f() { x || return 1; }\nf && g && tc y", "tc y"),
        ("[ a = a ] && { x; }\ntc y", "tc y"),
        ("{ x; } && tc y", "tc y"),
        ("[ a = a ] && x && tc y", "tc y"),
    ] {
        assert_eq!(commands(text).unwrap().last().map(String::as_str), Some(last), "{text}");
    }
}

#[test]
fn functions_are_called_by_their_names_only() {
    for text in ["f() { x; }; run() { \"$@\"; }\nrun f", "f() { x; }; G=f\n$G a", "f() { x; }\nA=1 f"] {
        assert!(commands(text).unwrap_err().contains("called by a variable"), "{text}");
    }
    assert_eq!(commands("f() { x; }; G=y\n$G f").as_deref(), Ok(&["y f".to_owned()][..]));
}

#[test]
fn numbers_and_signs_of_conditions() {
    for (text, found) in [
        ("if [ 010 -eq 10 ]; then x; else y; fi", "x"),
        ("if [[ 010 -eq 8 ]]; then x; else y; fi", "x"),
        ("D=; if [ -z \"${D-eth9}\" ]; then x; else y; fi", "x"),
        ("D=; if [ -z \"${D:-eth9}\" ]; then x; else y; fi", "y"),
        ("f() { shift 3; x $1 $#; }; f a b", "x a 2"),
        ("f() { set c d; x $1 $#; }; f a", "x c 2"),
    ] {
        assert_eq!(commands(text).unwrap(), [found], "{text}");
    }
    for text in ["if [[ 9 < 5 ]]; then x; fi", "if [ 0x10 -eq 16 ]; then x; fi", "A=1; x $((--A))"] {
        // The last has an expansion that the harness of these tests leaves out.
        let found = commands(text);
        assert!(found.is_err() || found == Ok(vec![]), "{text}: {found:?}");
    }
}
