use super::*;

/// The commands that a script comes to, or its first problem.
fn commands_of(text: &str, arguments: Option<&[&str]>) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    let mut wrong = None;
    let arguments: Option<Vec<String>> =
        arguments.map(|all| all.iter().map(|argument| (*argument).to_owned()).collect());
    let problems = run(
        text,
        Start { arguments: arguments.as_deref(), ..Start::default() },
        Lines::OF_SHELL,
        &mut |call| {
            if let Some(problem) = call.words.iter().find_map(Expanded::problem)
                && call.words[0].text() != "echo"
            {
                wrong.get_or_insert_with(|| problem.clone());
                return Answer::Wrong;
            }
            let words: Vec<&str> = call.words.iter().map(Expanded::text).collect();
            all.push(words.join(" "));
            Answer::Ran
        },
    );
    match problems.into_iter().next().or(wrong) {
        Some(problem) => Err(crate::ScenarioError::new("", "", vec![problem]).to_string()),
        None => Ok(all),
    }
}

fn commands(text: &str) -> Result<Vec<String>, String> {
    commands_of(text, None)
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
        ("case $1 in del) tc x;; *) tc y;; esac", &["tc y"]),
        ("case \"${1:-status}\" in start) x;; status) y;; esac", &["y"]),
        ("case b7 in [ac]*) x;; b[0-9]) y;; esac", &["y"]),
        ("case \'*\' in \"*\") x;; esac; case a in \"*\") y;; esac", &["x"]),
        ("case a in a) x;& b) y;; c) z;; esac", &["x", "y"]),
        ("case ab in a*) x;;& *b) y;; *) z;; esac", &["x", "y"]),
        ("case $# in 0) tc x;; *) tc y;; esac", &["tc x"]),
        ("case a in b) x;; esac\ny", &["y"]),
        ("f() { case $1 in on) x $2;; esac; }\nf on 3\nf off 4", &["x 3"]),
        ("case $(uname) in Linux) echo a;; *) exit;; esac\nx", &["uname", "x"]),
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
        ("case $(uname) in Linux) tc x;; esac", "`$(uname)` is a command"),
        ("case a in @(a|b)) x;; esac", "the pattern `@(a|b)` is not understood"),
        ("a || [ b = b ] && exit; tc x", "depends on the success or failure"),
        ("case a in a+(b)) x;; esac", "the pattern `a+(b)` is not understood"),
        ("f() { grep -q x y && tc z; }\nf", "what depends on the success or failure"),
        ("grep -q x y && echo a && tc z", "what depends on the success or failure"),
        ("LANG=C grep -q x y && tc z", "what depends on the success or failure"),
        ("grep -q x y && DEV=a; tc x $DEV", "`$DEV` has what a condition decides"),
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
        ("if [ \"$1\" == \"del\" ]; then tc x; else tc y; fi", &["tc y"][..]),
        ("if [ $# -gt 0 ]; then tc x; else tc y; fi", &["tc y"]),
        ("[ -z \"$1\" ] && tc x\n[ -n \"$2\" ] && tc y", &["tc x"]),
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
    let inside = commands("f() { if [ -f \"$1\" ]; then tc x; fi; }\nf a b").unwrap_err();
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
    for text in ["set -- $(ls)\ncase $1 in a) tc x;; esac", "set -- $(ls)\nif [ $# -gt 0 ]; then tc x; fi"] {
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
        ("x ||\n  echo a\ny", &["x", "y"]),
    ] {
        assert_eq!(
            commands(text).as_deref(),
            Ok(&expected.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
    for (text, error) in [
        ("if [ a = a ] && [ -f c ]; then tc x; fi", "a condition that depends on more than the script"),
        // A command that is executed is not skipped because nothing follows from it.
        ("if ! ipfw delete 1; then ipfw add 1; fi", "a condition that depends on more than the script"),
        ("if x; then tc y; fi", "a condition that depends on more than the script"),
        ("ipfw list 1 && exit\nx", "what depends on the success or failure"),
        ("kldstat -q && exit\nx", "what depends on the success or failure"),
        ("x || { sysctl net.inet.ip.fw.one_pass=0; }", "what depends on the success or failure"),
        ("x ||\n { ipfw y; }", "what depends on the success or failure"),
    ] {
        let found = commands(text).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
    assert_eq!(commands("echo a && exit\nx").as_deref(), Ok(&["echo a".to_owned()][..]));
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
        ("for ((i=0; i<x; i++)); do a; done", "`$x` is a variable of a shell that is not set"),
        ("for ((i=0; 1; i++)); do a; done", "does not end within 65536 turns"),
        ("until false; do tc a; done", "does not end within 65536 turns"),
        ("for ((i=0; i<1)); do a; done", "`for` that is not understood"),
    ] {
        let found = commands(text).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
}

#[test]
fn what_runs_in_a_shell_of_its_own_leaves_nothing() {
    for (text, found) in [
        ("A=1; f() { A=2; x $A; exit; }; f | cat\ny $A", &["x 2", "cat", "y 1"][..]),
        ("for i in 1 2; do x $i; done | cat\ny $i", &["x 1", "x 2", "cat", "y"]),
        ("f() { x; exit; }; f &\ny", &["x", "y"]),
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
    for text in [
        "f() { sleep 5; tc x; }; f &\ny",
        "{ sleep 5; tc x; } &\ny",
        "for i in 1 2; do sleep 1; tc x; done &\ny",
    ] {
        assert!(commands(text).unwrap_err().contains("in the background that wait"), "{text}");
    }
}

#[test]
fn what_depends_on_commands_that_may_fail() {
    for text in [
        "[ a = a ] && grep -q x FILE && tc x",
        "{ grep -q x y; } && tc x",
        "f() { [ -n \"$1\" ]; grep -q x y; }\nf && tc x",
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
        ("f() { return 1; }\nz; f || exit\nx", "z"),
        ("f() { x || return 1; }\nf && g && tc y", "tc y"),
        ("[ a = a ] && { x; }\ntc y", "tc y"),
        ("{ x; } && tc y", "tc y"),
        ("[ a = a ] && x && tc y", "tc y"),
        ("z; [ a = b ] && { echo x; } && tc x", "z"),
        ("f() { [ -n \"$1\" ]; }\nz; f && tc x", "z"),
        ("z; ((i = 0)) && tc x", "z"),
        ("z; let i=0 && tc x", "z"),
        ("z; ((i = 2)) && ((i++)); x $i", "x 3"),
        ("false || tc x", "tc x"),
        ("z; true || tc x", "z"),
        ("! false && tc x", "tc x"),
        ("z; a() { return $1; }; a 3; x $?", "x 3"),
        ("f() { x; [ a = b ] || return; y; }; f; z", "z"),
    ] {
        assert_eq!(commands(text).unwrap().last().map(String::as_str), Some(last), "{text}");
    }
}

#[test]
fn the_shell_ends_on_failure_where_it_is_told_to() {
    for (text, found) in [
        ("set -e\nx; false; y", &["x"][..]),
        ("set -eu -o pipefail\nx; [ a = b ]; y", &["x"]),
        ("set -o errexit; x; if [ a = b ]; then y; fi; z", &["x", "z"]),
        ("set -e\n[ a = b ] && y; x", &["x"]),
        ("set -e\n! true; x", &["x"]),
        ("set -e\nfalse || true; x", &["x"]),
        ("set -e; set +e; false; x", &["x"]),
        ("set -e\nf() { false; x; }; f || y; z", &["x", "z"]),
        ("set -e\nf() { false; x; }; y; f; z", &["y"]),
        ("#!/bin/sh -e\nx; false; y", &["x"]),
        ("set -e; i=0; x; ((i++)); y", &["x"]),
    ] {
        let expected: Vec<String> = found.iter().map(|command| (*command).to_owned()).collect();
        assert_eq!(commands(text).as_deref(), Ok(&expected[..]), "{text}");
    }
}

#[test]
fn functions_are_called_by_their_names() {
    for (text, found) in [
        // Another shell gets what is exported.
        ("export A=1; sh -c 'x $A $1' name 2", "x 1 2"),
        ("A=1 bash -c 'x $A'; y", "y"),
        ("A=1 bash -c 'x $A' | cat", "cat"),
        ("f() { x $1; }; export -f f; bash -c 'f 3'", "x 3"),
        ("f() { x $1; }; run() { \"$@\"; }\nrun f 7", "x 7"),
        ("f() { x; }; G=f\n$G a", "x"),
        ("f() { x $A; }\nA=1 f", "x 1"),
        ("f() { x; }; G=y\n$G f", "y f"),
        ("f() { x; }; f() { y; }; f", "y"),
        ("f() (x; A=2); A=1; f; y $A", "y 1"),
        ("function f { x; }\nf", "x"),
        ("f() { for i in \"$@\"; do x $i; done; }; f a b", "x b"),
        ("f() { for i; do x $i; done; }; f a b", "x b"),
        ("eval \"f() { x \\$1; }\"; f 8", "x 8"),
        ("f x\"$@\"", "f x"),
        ("set -- a b; f x\"$@\"y", "f xa by"),
    ] {
        let found_here = commands_of(text, Some(&[]));
        assert_eq!(found_here.unwrap().last().map(String::as_str), Some(found), "{text}");
    }
}

/// Variables of the script are not those of another shell.
#[test]
fn other_shells_do_not_get_what_is_not_exported() {
    for text in [
        "A=1; sh -c 'tc x ${A}s'",
        "export A=1; sudo sh -c 'tc x ${A}s'",
        "export A=1; ssh host 'tc x ${A}s; y'",
        "A=1; echo 'tc x ${A}s' > f.sh; bash f.sh",
    ] {
        let found = commands_of(text, Some(&[])).unwrap_err();
        assert!(found.contains("`$A` is a variable of a shell that is not set"), "{text}: {found}");
    }
    assert_eq!(commands("A=1; ssh host \"tc x ${A}s; y\"").unwrap(), ["ssh host tc x 1s", "ssh host y"]);
    assert_eq!(commands("f() { tc x; }; bash -c f").unwrap(), ["f"]);
    assert_eq!(commands("export A=1; sudo -E sh -c 'tc x $A'").unwrap(), ["tc x 1"]);
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
    for text in ["if [[ 9 < 5 ]]; then tc x; fi", "if [ 0x10 -eq 16 ]; then tc x; fi"] {
        assert!(commands(text).is_err(), "{text}");
    }
}

/// What bash 5.2 makes of these.
#[test]
fn scripts_mean_what_bash_makes_of_them() {
    for (text, arguments, expected) in [
        ("A=(a 'b c' d); x \"${A[@]}\" ${#A[@]} ${A[1]} \"${A[-1]}\"", &[][..], &["a b c d 3 b c d"][..]),
        ("A=(1 2); A+=(3); A[5]=6; x ${A[@]} ${!A[@]} ${A[*]:1:2}", &[][..], &["1 2 3 6 0 1 2 5 2 3"][..]),
        (
            "declare -A M=([up]=1mbit [down]=2mbit); M[x]=3; for k in \"${!M[@]}\"; do x $k ${M[$k]}; done",
            &[][..],
            &["down 2mbit", "x 3", "up 1mbit"][..],
        ),
        (
            "declare -A profile; profile[delay]=5 profile[rate]=7; x ${profile[delay]} ${profile[none]:-no} ${#profile[@]}",
            &[][..],
            &["5 no 2"][..],
        ),
        (
            "while [ $# -gt 0 ]; do case $1 in -r) R=$2; shift 2;; --d=*) D=${1#*=}; shift;; *) x other $1; shift;; esac; done; x $R $D",
            &["-r", "5", "--d=7", "z"][..],
            &["other z", "5 7"][..],
        ),
        (
            "while getopts 'i:r:vh' o; do case $o in i) I=$OPTARG;; r) R=$OPTARG;; v) V=1;; ?) x bad;; esac; done; shift $((OPTIND-1)); x $I $R $V $1",
            &["-vi", "eth0", "-r9", "rest"][..],
            &["eth0 9 1 rest"][..],
        ),
        (
            "while getopts ':a:b' o; do x $o ${OPTARG:-none}; done",
            &["-b", "-q", "-a"][..],
            &["b none", "? q", ": a"][..],
        ),
        (
            "while read -r a b c; do x $b $a \"$c\"; done <<EOF\n1 2 3 4\n5 6\nEOF",
            &[][..],
            &["2 1 3 4", "6 5 "][..],
        ),
        ("while IFS=, read -r n r; do x $n $r; done <<< \"eth0,5mbit\"", &[][..], &["eth0 5mbit"][..]),
        ("echo 'a b' | while read p q; do x $q; done; x ${p:-none}", &[][..], &["b", "none"][..]),
        ("IFS=:; for p in $V1; do x $p; done; set -- a:b; x $1", &[][..], &["a b"][..]),
        (
            "P=a/b/c.sh; x ${P##*/} ${P%/*} ${P%.*} ${P#*/} ${#P} ${P/b/X} ${P//\\//-} ${P:2:3} ${P: -2}",
            &[][..],
            &["c.sh a/b a/b/c b/c.sh 8 a/X/c.sh a-b-c.sh b/c sh"][..],
        ),
        (
            "N=eTh0; x ${N^^} ${N,,} ${N^} ${N/%0/1} ${N/#e/w} ${N+set} ${Q+set}end ${Q:-d}",
            &[][..],
            &["ETH0 eth0 ETh0 eTh1 wTh0 set end d"][..],
        ),
        ("x=5; until [ $x -le 3 ]; do x $x; x=$((x-1)); done", &[][..], &["5", "4"][..]),
        (
            "for i in {1..3} {a..c} {08..10}; do x $i; done",
            &[][..],
            &["1", "2", "3", "a", "b", "c", "08", "09", "10"][..],
        ),
        (
            "i=0; while true; do i=$((i+1)); [ $i -eq 2 ] && continue; [ $i -gt 3 ] && break; x $i; done",
            &[][..],
            &["1", "3"][..],
        ),
        (
            "for i in 1 2; do for j in 1 2 3; do [ $j = 2 ] && continue 2; x $i$j; done; done",
            &[][..],
            &["11", "21"][..],
        ),
        ("f() { local a=$1; shift; x $a \"$@\"; return 3; }; f 1 2 3; x $?", &[][..], &["1 2 3", "3"][..]),
        ("x $(printf '%s-' a b) $(echo -n q) `echo z`", &[][..], &["a-b- q z"][..]),
        (
            "R=10mbit; x ${R//[!0-9]/} $(echo $R | sed 's/[0-9]*//') $(echo $R | tr -d a-z)",
            &[][..],
            &["10 mbit 10"][..],
        ),
        (
            "[[ 5mbit =~ ^[0-9]+mbit$ ]] && x yes; [[ abc == a* ]] && x glob; [[ -z '' && 3 -gt 2 ]] && x both; [[ ! ( a = b || c = d ) ]] && x paren",
            &[][..],
            &["yes", "glob", "both", "paren"][..],
        ),
        (
            "if ((3 > 2)); then x big; elif false; then x no; else x else; fi; ((0)) || x zero",
            &[][..],
            &["big", "zero"][..],
        ),
        (
            "a=1; b=a; x $((b + 1)) $((a++)) $a $((a > 1 ? 10 : 20)) $((2**10)) $((7 % 4))",
            &[][..],
            &["2 1 2 10 1024 3"][..],
        ),
        (
            "v=name; name=val; x ${!v}; printf -v out '%03d' 7; x $out; let 'q = 3 * 4'; x $q",
            &[][..],
            &["val", "007", "12"][..],
        ),
        (
            "case eth0 in e*|w*) x first;; esac; case 12 in [0-9]) x one;; [0-9][0-9]) x two;; esac",
            &[][..],
            &["first", "two"][..],
        ),
        ("x a\\ b 'c d'\"e f\" \"$(echo 'g  h')\" $(echo 'g  h')", &[][..], &["a b c de f g  h g h"][..]),
        ("cat <<'E' | while read l; do x $l; done\n$HOME x\nE", &[][..], &["$HOME x"][..]),
        ("V=1; (V=2; x $V); x $V; { V=3; }; x $V", &[][..], &["2", "1", "3"][..]),
        ("D=$(cd /tmp && pwd); x $D", &[][..], &["/tmp"][..]),
        ("A='a b'; x $A \"$A\"; set -- $A; x $#; x \"$*\"", &[][..], &["a b a b", "2", "a b"][..]),
        ("f() { echo out$1; }; x $(f 5); y=$(f 6); x $y", &[][..], &["out5", "out6"][..]),
        ("x ${1:-def} ${2:?} 2>/dev/null; x after", &["a", "b"][..], &["a b", "after"][..]),
        ("unset A; x \"${A-unset}\" ${A:=new} $A", &[][..], &["unset new new"][..]),
        ("for x in; do x never; done; for y in a; do x $y; done", &[][..], &["a"][..]),
        ("n=3; for ((i=1; i<=n; i++)) { x $i; }", &[][..], &["1", "2", "3"][..]),
        ("x $'a\\tb' $((16#1f)) $((010)) $((0x10))", &[][..], &["a\tb 31 8 16"][..]),
        ("mapfile -t L <<< $'p\\nq'; x ${#L[@]} ${L[1]}", &[][..], &["2 q"][..]),
        ("x \"a  b\" | cat; ! false && x neg; false || { x or; }", &[][..], &["a  b", "neg", "or"][..]),
        ("f() { [ \"$1\" = up ] || return 1; x up; }; f down; x $?; f up", &[][..], &["1", "up"][..]),
        ("x {a,b}{1,2}", &[][..], &["a1 a2 b1 b2"][..]),
        ("read -r -d '' T <<E\n a b\nc\nE\nx $? \"$T\"", &[][..], &["1 a b\nc"][..]),
        ("read a b <<< '1 2 3'; x $b; IFS=. read -ra P <<< 10.0.0.7; x ${P[3]}", &[][..], &["2 3", "7"][..]),
    ] {
        let text = format!("#!/bin/bash\n{text}");
        let all = commands_of(&text, Some(arguments)).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let found: Vec<&str> = all.iter().filter_map(|one| one.strip_prefix("x ")).collect();
        assert_eq!(found, expected, "{text}");
    }
}

/// What a comparison with bash 5.2 found.
#[test]
fn words_are_divided_and_quoted_as_by_bash() {
    for (text, expected) in [
        ("IFS=,; V=a,,b; f $V; V=,a,; f $V", &["3", "2"][..]),
        ("f ${Z:-\"a b\"} ${Z:-a b} \"${Z:-a b}\"; B=1; f ${B:+\"c d\"}", &["4", "1"]),
        ("set -- a 'b c'; f ${1+\"$@\"}; f \"${Z:-$@}\"; f \"$Z$@\"", &["2", "2", "2"]),
        ("x \"${Z:-'q'}\" \"${Z:-\"p q\"}\" \"${Z:-a\\}b}\"", &["'q' p q a}b"]),
        ("IFS=,; set -- a b; A=$*; x \"$A\"; A=$@; x \"$A\"", &["a,b", "a b"]),
        ("set -- ''; x \"[${1-d}]\" \"[${1+s}]\" \"[${1:-e}]\"", &["[] [s] [e]"]),
        ("A=(''); x \"[${A[0]-d}]\" \"[${A[1]-d}]\"; A[3]=; x \"${A[3]+s}\"", &["[] [d]", "s"]),
        ("declare -A M=([k]=); k=k; x \"[${M[$k]-d}]\" \"[${M[$k]+s}]\"", &["[] [s]"]),
        ("A=(1 2); x ${A[5]:=q} ${A[5]}", &["q q"]),
        ("V=p; x \"[${V: -2}]\" \"[${V: -1}]\"", &["[] [p]"]),
        ("x $'a\\\\n' $'a\\'b' \"`echo \\\"a  b\\\"`\"", &["a\\n a'b a  b"]),
        ("x {\"a b\",c} {a,{b,c}} {a..e..2} p{$Z,q}; f {,y}", &["a b c a b c a c e p pq", "1"]),
        ("a=0; f() { local a=1 b=$a; x $b; }; f; A=; export A=1 B=$A; x \"b$B\"", &["0", "b"]),
        ("declare \"A=\\$x\"; x \"$A\"; V='A=1 B=2'; export $V; x $A $B", &["$x", "1 2"]),
        ("A=(a b); A=(\"${A[@]}\" c); x ${A[@]} ${!A[@]}", &["a b c 0 1 2"]),
        ("A=([2]=a b); x ${!A[@]}; B=(2); A[${B[0]}]=5; x ${A[2]}; A[2]+=6; x ${A[2]}", &["2 3", "5", "56"]),
        (
            "while read -r l; do x \"$l\"; done <<E\n\\\"a\\\" ${Z:-\"b\"} \\\\\nt\\\nE\nE",
            &["\\\"a\\\" b \\", "tE"],
        ),
        ("printf 'a\\nb' | while read l; do x $l; done", &["a"]),
        ("read a b <<< 'p\\\\q c\\ d'; x \"$a\" \"$b\"", &["p\\q c d"]),
        ("while IFS=, read a b; do x \"$a|$b\"; done <<< $'1,2,\\n1,2,3,\\n,'", &["1|2", "1|2,3,", "|"]),
        ("f() { x f; }; unset -f f; f; x e", &["e"]),
        ("A=([3]=a b); x ${A[@]:1} ${A[@]:4:1} ${Z/#*/-}${1/#*/-}", &["a b b -"]),
        ("x \"${Z//*/q}${Z/a/q}\"; m=3; x $((m += m--))", &["q", "6"]),
        ("while read a; do x $a; done <<'E'\na\nt\\\nE\nx \"$a\"", &["a", "t"]),
        (
            "[[ abc =~ \"a.c\" ]] || x f; [[ abc =~ a\\.c ]] || x g; [[ a.c =~ a\\.c ]] && x t",
            &["f", "g", "t"],
        ),
    ] {
        let text = format!("#!/bin/bash\nZ=\nf() {{ x $#; }}\n{text}");
        let all = commands_of(&text, Some(&[])).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let found: Vec<&str> = all.iter().filter_map(|one| one.strip_prefix("x ")).collect();
        assert_eq!(found, expected, "{text}");
    }
    for text in [
        "tc ~/a",
        "tc {1..100000}",
        "tc $'\\x41'",
        "A='a&b'; B=a; tc ${B/a/&}",
        "declare -i A; A=1+2; tc $A",
        "declare -u A=a; tc $A",
        "readonly A=1; A=2; tc $A",
        "set -u; unset A; tc \"$A\"",
        "read -n 1 a <<< hello; tc $a",
        "read -d , a <<< he,llo; tc $a",
        "mapfile L <<< a; tc ${L[0]}",
        "A[i + 1]=5; tc ${A[1]}",
        "A=$(</etc/hostname); tc \"$A\"",
        "while read l; do tc $l; done <<E\n$(hostname)\nE",
        "while read l; do tc $l; done <<E\n$(echo a\necho b)\nE",
        "f() { for i; do tc $i; done; }; f $(hostname)",
    ] {
        let text = format!("#!/bin/bash\n{text}");
        assert!(commands_of(&text, Some(&[])).is_err(), "{text}");
    }
    // Words of one word may be commands of the shell.
    for text in ["D='builtin builtin x'\n$D".to_owned(), "builtin ".repeat(100_000)] {
        assert!(commands(&text).unwrap_err().contains("before another one"));
    }
    // What takes long is refused.
    let long = format!("A={}", "a".repeat(60_000));
    assert!(commands(&format!("{long}\ntc ${{A//a*b/x}}")).is_err());
    assert_eq!(commands(&format!("{long}\ntc ${{A//a/}} ${{A#b}}")).map(|all| all.len()), Ok(1));
}

/// What a comparison with bash 5.2 found.
#[test]
fn statuses_are_those_of_bash() {
    for (text, expected) in [
        ("false; case a in a) x $?;; esac; false; for i in 1; do x $?; done", &["1", "1"][..]),
        (
            "false; case a in a) ;; esac; x $?; false; case a in b) ;; esac; x $?; false; for i in; do :; done; x $?",
            &["0", "0", "0"],
        ),
        ("(exit 3); x $?; A=$(exit 4); x $?; f() ( exit 2 ); f; x $?", &["3", "4", "2"][..]),
        ("if (exit 1); then tc x; else x no; fi; f() { return 300; }; f; x $?", &["no", "44"]),
        ("return 3; x $?; if true; then break; x a; fi", &["2", "a"]),
        (
            "for i in 1 2; do (break; x in); f() { break; x f; }; f; x $i; done",
            &["in", "f", "1", "in", "f", "2"],
        ),
        ("for i in 1 2; do eval break; x $i; done; x e", &["e"]),
        ("i=0; while [ $i -lt 2 ]; do i=$((i+1)); false; done; x $?", &["1"]),
        (
            "while true; do [ 1 = 2 ] || break; done && x a; for i in 1; do false || continue; done && x b",
            &["a", "b"],
        ),
        ("false; eval ''; x $?; local_() { local A=$(false); x $?; }; local_", &["0", "0"]),
        (
            "set -e; if true; then ! true; fi; { [ a = b ] && tc; }; for i in 1; do [ a = b ] && tc; done; x a",
            &["a"],
        ),
        ("set -e; x $(false; echo a); { false; x in; } | cat; (false; x in) || x out", &["a", "in"]),
        ("set -eo pipefail; false | cat; x out", &[]),
        ("set -o pipefail; false | cat; x $?; if false | true; then tc x; else x b; fi", &["1", "b"]),
        ("A=; [ $A = b ]; x $?; [ a b ]; x $?; [ a = ] || [ -z a b ] || x c", &["2", "2", "c"]),
        (
            "[ ! = ! ] && x 1; [ ! ] && x 2; [ ! -n ] || x 3; [ '(' = '(' ] && x 4; [ -z = ] || x 5",
            &["1", "2", "3", "4", "5"],
        ),
        ("A=$(expr 1 - 1) || x f; expr 0 + 0 >/dev/null || x g", &["f", "g"]),
        ("(exec y a; x c); x b; exec y; x d", &["b"]),
        (
            "A=1.2.3.1-253; x $(echo $A | awk '{print substr($0,1,index($0,\"-\")-1)}') $(echo $A | awk '{print substr($1,3,3) length($1) index($1,\"z\") substr($1,12)}')",
            &["1.2.3.1 2.3110"],
        ),
        ("(exit 3); A=$?; x $A $?; A=$(exit 4)$? B=$?; x $A $B $?; $(exit 5); x $?", &["3 0", "4 4 4", "5"]),
        ("false; A=$? B=$?; x $A $B; (exit 3); local_() { local C=$?; x $C; }; local_", &["1 1", "0"]),
    ] {
        let text = format!("#!/bin/bash\n{text}");
        let all = commands_of(&text, Some(&[])).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let found: Vec<&str> = all.iter().filter_map(|one| one.strip_prefix("x ")).collect();
        assert_eq!(found, expected, "{text}");
    }
    // What goes on elsewhere is no guard.
    for text in [
        "f() { grep -q x y || return 1; }; if f; then tc a; else tc b; fi",
        "(grep -q x y || exit 1) && tc a",
        "f() { [ -f /a ] || return 1; echo b; }; tc $(f)",
        "f() { grep -q x y; return $?; }; f && tc z",
        "f() { grep -q x y || return 0; return 1; }; if f; then tc a; else tc b; fi",
        "f() { if [ -f /etc/zz ]; then return; fi; tc x; }; f",
        "tc $(grep -q x f && { echo a; exit; }; echo b)",
        "[ \"$(tc qdisc show dev e | awk '{if ($1 == \"hfsc\") print $6; else print $2}')\" = 5 ] || tc x",
        "(grep -q x f || { echo a; exit 0; }; tc x)",
        "[ 5 -gt abc ] || exit; tc x",
        "[ -f /a ] || [ -f /b ] || tc x",
    ] {
        assert!(commands_of(text, Some(&[])).is_err(), "{text}");
    }
}

#[test]
fn aliases_settings_and_old_arithmetic() {
    let alias = "alias on='ip netns exec'\non a tc x\n";
    for enabled in [format!("shopt -s expand_aliases\n{alias}"), format!("#!/bin/sh\n{alias}")] {
        let all = commands(&enabled).unwrap();
        assert_eq!(all.last().unwrap(), "ip netns exec a tc x", "{enabled}");
    }
    // bash expands none in a script by itself.
    assert_eq!(commands(&format!("#!/bin/bash\n{alias}")).unwrap().last().unwrap(), "on a tc x");
    let own = "#!/bin/sh\nalias tc='tc -s'\ntc x\n";
    assert_eq!(commands(own).unwrap().last().unwrap(), "tc -s x");
    assert_eq!(
        commands("N=1; echo $N > /proc/sys/net/ipv4/ip_forward\necho x > /proc/sys/$UNKNOWN\n").unwrap(),
        ["sysctl -w net.ipv4.ip_forward=1", "echo x"]
    );
    assert_eq!(
        commands("for((i=1; i<=2; i++)); do tc $[$[$i*10]+1] x; done\n").unwrap(),
        ["tc 11 x", "tc 21 x"]
    );
}
