use super::*;

#[test]
fn every_name_builds_what_it_names() {
    for &name in ReceiveWindowName::ALL {
        assert_eq!(name.build(&Config::default()).name(), name);
    }
}
