use super::*;

const PATCH: &str = "Why this is done.

--- a/some/file.c
+++ b/some/file.c
@@ -1 +1,2 @@
 int a;
+int b;
@@ -3,3 +4,3 @@
 {

-	return a;
+	return a + b;
";

fn applied(patch: &str, text: &str) -> Result<String, String> {
    Patch::parse(patch)?.files[0].apply(text)
}

#[test]
fn a_patch_is_applied_by_its_lines_wherever_they_are() {
    let moved = "// one\n// more\nint a;\n\nint f(void)\n{\n\n\treturn a;\n}\n";
    let expected = "// one\n// more\nint a;\nint b;\n\nint f(void)\n{\n\n\treturn a + b;\n}\n";
    assert_eq!(applied(PATCH, moved).unwrap(), expected);
    assert_eq!(applied(PATCH, expected).unwrap(), expected);
}

#[test]
fn whole_lines_are_compared() {
    let indented = applied(PATCH, "\tint a;\n{\n\n\treturn a;\n").unwrap_err();
    assert!(indented.contains("`int a;` is there 0 times"), "{indented}");
}

#[test]
fn the_end_of_a_file_stays_as_it_is() {
    let patch = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n";
    assert_eq!(applied(patch, "one").unwrap(), "two");
    assert_eq!(applied(patch, "one\n").unwrap(), "two\n");
}

#[test]
fn reasons_are_no_part_of_what_a_patch_does() {
    assert_eq!(changes(PATCH), changes(&PATCH.replace("Why this is done", "What for")));
    assert!(changes(PATCH).starts_with("--- a/some/file.c\n"));
}

#[test]
fn a_patch_that_is_none_is_said_so() {
    let hunk = |hunk: &str| Patch::parse(&format!("--- a/f\n+++ b/f\n{hunk}")).unwrap_err();
    for (wrong, why) in [
        (Patch::parse("Only reasons.\n").unwrap_err(), "names no file"),
        (Patch::parse("--- a/f\n+++ b/g\n").unwrap_err(), "`--- a/f` is not followed by"),
        (hunk(""), "no hunk for f"),
        (hunk("@@ one @@\n"), "`@@ one @@` is neither"),
        (hunk("@@ -1,2 +1,2 @@\n-one\n+two\n"), "other numbers of lines"),
        (hunk("@@ -1 +1 @@\n-one\n+two\n+three\n"), "`+three` is neither"),
        (hunk("@@ -1 +1 @@\n*one\n"), "other numbers of lines"),
        (hunk("@@ -0,0 +1 @@\n+one\n"), "other numbers of lines"),
    ] {
        assert!(wrong.contains(why), "{wrong}");
    }
}
