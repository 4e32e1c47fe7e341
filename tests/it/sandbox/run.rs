//! What a sandbox gives its programs and its caller.

use super::support::{out, script};
use hangar::sandbox::spec::End;

#[test]
fn a_program_runs_and_its_streams_come_back() {
    let outcome = script(
        "echo hello; echo oops >&2; id; ls -l / /etc /dev /proc/self/fd; cat /proc/mounts /proc/self/status; exit 3",
    );
    println!("{}", out(&outcome));
    println!("{}", String::from_utf8_lossy(&outcome.steps[0].stderr));
    println!("{:?}", outcome.steps[0].wall);
    assert_eq!(outcome.steps[0].end, End::Exited(3));
}
