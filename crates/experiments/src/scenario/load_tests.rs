use super::*;

const GOOD: &str = r#"name = "x"
duration = "10s"

[radio]
rtt = "100ms"
[radio.down]
rate = "7.2mbit"
loss = { independent = "0.1%" }

[[flows]]
name = "download"

[gateway.config.rtt-modulation]
beta = 2

[[vary]]
key = "gateway.profile"
values = ["off", "full"]
names = ["unaccelerated", "accelerated"]
"#;

#[track_caller]
fn refused(text: &str, wanted: &str) {
    let error = parse_text(text).unwrap_err();
    assert_eq!(error.to_string(), wanted);
    assert_eq!(error.kind(), crate::error::Kind::Input);
}

#[test]
fn a_good_file_has_its_variants() {
    let file = parse_text(GOOD).unwrap();
    let names: Vec<&str> = file.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["unaccelerated", "accelerated"]);
    assert!(file.variants[0].scenario.gateway.resolve().unwrap().is_none());
    assert!(file.variants[1].scenario.gateway.resolve().unwrap().is_some());
}

#[test]
fn the_former_word_for_pass_is_read() {
    for key in ["pass", "bypass"] {
        let text = GOOD.replace("name = \"download\"", &format!("name = \"download\"\n{key} = true"));
        assert!(parse_text(&text).unwrap().variants[0].scenario.flows[0].pass, "{key}");
    }
}

#[test]
fn unknown_keys_are_refused_with_line_and_suggestion() {
    refused(&GOOD.replace("loss =", "los ="), "x.toml:8: unknown key `los`; did you mean `loss`?");
    refused(&GOOD.replace("beta =", "bet ="), "x.toml:14: unknown key `bet`; did you mean `beta`?");
    refused(
        &format!("{GOOD}\n[[gateway.config.sharing.flows]]\naction = \"pass\"\n"),
        &format!(
            "x.toml:{}: `sharing.flows` is no longer a key; write each rule as [[rule]]",
            GOOD.lines().count() + 2
        ),
    );
    let error = parse_text(&GOOD.replace("rtt = \"100ms\"", "colour = 3")).unwrap_err().to_string();
    assert!(
        error.starts_with("x.toml:5: unknown key `colour`; known here: rtt, rtt-steps, down, up"),
        "{error}"
    );
}

#[test]
fn bad_values_are_refused_with_line_and_example() {
    let error = parse_text(&GOOD.replace("\"7.2mbit\"", "7.2")).unwrap_err().to_string();
    assert!(error.starts_with("x.toml:7: ") && error.contains("such as \"7.2mbit\""), "{error}");
    let error = parse_text(&GOOD.replace("\"100ms\"", "100")).unwrap_err().to_string();
    assert!(error.starts_with("x.toml:5: found integer `100` where text is expected"), "{error}");
    let error = parse_text(&GOOD.replace("\"full\"", "\"ful\"")).unwrap_err().to_string();
    assert_eq!(error, "x.toml:16: variant `accelerated`: unknown value `ful`; did you mean `full`?");
    refused(
        &GOOD.replace("beta = 2", "beta = 7"),
        "x.toml:13: variant `accelerated`: rtt-modulation.beta: give 1, 2 or 3 (the thesis needs beta < 4)",
    );
    refused(&GOOD.replace("name = \"download\"", "size = \"1mb\""), "x.toml:10: missing key `name`");
}

#[test]
fn what_excludes_each_other_is_refused() {
    let late = GOOD.replace("name = \"download\"", "name = \"download\"\nstart = \"11s\"");
    assert!(parse_text(&late).unwrap_err().to_string().contains("after the run has ended"));
    let udp = GOOD.replace("name = \"download\"", "name = \"noise\"\nprotocol = \"udp\"");
    assert!(parse_text(&udp).unwrap_err().to_string().contains("UDP needs `rate`"));
    let ping = udp.replace("udp", "ping");
    assert!(parse_text(&ping).is_ok());
    for (key, why) in
        [("rate = \"1mbit\"", "an `interval`"), ("count = 2", "leave"), ("size = \"1kb\"", "leave")]
    {
        let error =
            parse_text(&ping.replace("\"ping\"", &format!("\"ping\"\n{key}"))).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let big =
        GOOD.replace("[radio]", "[client]\nreceive-buffer = \"128kb\"\nwindow-scaling = false\n[radio]");
    assert!(
        parse_text(&big)
            .unwrap_err()
            .to_string()
            .starts_with("x.toml:5: variant `unaccelerated`: windows above")
    );
}

#[test]
fn syntax_errors_have_their_line() {
    let error = parse_text("name = \"x\"\nduration = \n").unwrap_err().to_string();
    assert!(error.starts_with("x.toml:2: "), "{error}");
}

#[test]
fn variants_with_one_name_are_refused() {
    let error = parse_text(&GOOD.replace("\"unaccelerated\"", "\"accelerated\"")).unwrap_err().to_string();
    assert!(error.contains("two variants are named `accelerated`"), "{error}");
}
