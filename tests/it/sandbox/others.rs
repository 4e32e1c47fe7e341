//! The same tests for the other providers: what works in them, and what must not.
//!
//! Where a provider is not named, it does that in another way; `docs/reference/sandboxes.md` says so.

use super::support::with;

/// One test of the embedded provider, tried with another one.
macro_rules! one {
    ($module:ident $test:ident bwrap) => {
        one!($module $test bwrap "heavy: needs bubblewrap");
    };
    ($module:ident $test:ident podman) => {
        one!($module $test podman "heavy: needs podman, as root");
    };
    ($module:ident $test:ident docker) => {
        one!($module $test docker "heavy: needs docker and its daemon, as root");
    };
    ($module:ident $test:ident gvisor) => {
        one!($module $test gvisor "heavy: needs runsc");
    };
    ($module:ident $test:ident $provider:ident $reason:literal) => {
        #[test]
        #[ignore = $reason]
        fn $provider() {
            super::super::with(stringify!($provider), super::super::super::$module::$test);
        }
    };
}

/// Tests of the embedded provider, each with the others for which it holds too.
macro_rules! hold_too {
    ($($module:ident { $($test:ident: $($provider:ident)*,)* })*) => {
        $(mod $module {
            $(mod $test {
                $(one!($module $test $provider);)*
            })*
        })*
    };
}

hold_too! {
    escape {
        host_files_are_not_there: bwrap podman docker,
        host_sockets_are_out_of_reach_even_when_their_folder_is_bound: bwrap podman docker,
        privileges_are_gone_and_cannot_be_had: bwrap podman docker,
        a_set_user_id_program_gains_nothing: bwrap,
        the_supervisor_is_out_of_reach: bwrap podman docker gvisor,
        a_child_cannot_write_its_parents_memory: bwrap podman docker,
        without_the_inner_domain_the_supervisor_is_still_out_of_reach: bwrap podman docker gvisor,
        inherited_descriptors_are_closed: bwrap podman docker gvisor,
        the_channel_is_only_for_who_was_given_it: bwrap podman docker gvisor,
        a_crash_dumps_no_memory: bwrap podman docker,
        there_is_no_terminal: bwrap podman docker,
        what_is_not_ours_cannot_be_written: bwrap podman docker gvisor,
    }
    lifetime {
        survivors_die_with_their_step: bwrap podman docker gvisor,
        a_timeout_kills_everything: bwrap podman docker gvisor,
        an_interrupt_kills_everything: bwrap podman docker gvisor,
        nothing_is_left_when_hangar_is_killed: bwrap podman docker,
        nothing_is_left_when_the_launcher_is_killed: bwrap,
    }
    limits {
        a_memory_bomb_is_killed_at_the_bound: bwrap podman docker,
        a_fork_bomb_is_stopped_at_the_bound: bwrap podman docker gvisor,
        a_large_file_is_refused: bwrap podman docker gvisor,
        a_flood_ends_with_the_clock: bwrap podman docker gvisor,
        descriptors_are_bounded: bwrap podman docker gvisor,
    }
    network {
        nothing_but_loopback_is_there: bwrap podman docker,
        a_bridge_leads_to_a_socket_of_the_host_and_nowhere_else: bwrap podman docker,
        a_bridge_to_nobody_just_ends: bwrap podman docker,
    }
    probe {
        a_sandbox_is_measured_to_be_sealed: bwrap podman docker,
        a_limit_that_was_not_asked_for_is_not_claimed: bwrap podman docker,
        a_hole_in_the_specification_is_found: bwrap podman docker,
        a_kernel_of_its_own_is_measured: gvisor,
    }
    run {
        streams_and_status_come_back: bwrap podman docker gvisor,
        a_program_that_is_not_there_is_said_so: bwrap podman docker gvisor,
        the_environment_is_what_the_step_names_and_nothing_else: bwrap podman docker gvisor,
        the_machine_looks_neutral: bwrap podman docker gvisor,
        standard_input_and_the_channel_are_connected: bwrap podman docker gvisor,
        steps_share_files_but_no_processes: bwrap podman docker,
        the_rest_is_skipped_after_a_failure_when_asked: bwrap podman docker gvisor,
        a_deadline_bounds_all_steps_together: bwrap podman docker gvisor,
        lines_are_shown_as_they_come: bwrap podman docker gvisor,
        output_is_cut_at_its_bound_and_the_program_goes_on: bwrap podman docker gvisor,
        a_large_channel_is_read_to_its_end: bwrap podman docker gvisor,
        a_step_that_stands_still_is_ended: bwrap podman docker gvisor,
        the_provider_works_here_by_its_own_account: bwrap podman docker gvisor,
    }
    tree {
        a_read_only_mount_is_read_and_not_written: bwrap podman docker gvisor,
        a_single_file_can_be_mounted: bwrap podman docker gvisor,
        a_writable_mount_changes_the_host: bwrap podman docker gvisor,
        changes_of_a_scratch_mount_stay_in_memory: bwrap podman docker gvisor,
        where_the_kernel_refuses_an_overlay_a_scratch_mount_is_a_copy: bwrap podman docker,
        a_laid_file_replaces_what_stands_there_and_follows_nothing: bwrap podman docker gvisor,
        a_laid_file_is_refused_where_the_tree_bends_its_path: bwrap podman docker gvisor,
        a_laid_file_never_lands_on_the_host: bwrap podman docker gvisor,
        a_tree_decides_no_mount_point: bwrap podman docker gvisor,
        the_fixed_parts_cannot_be_replaced: bwrap podman docker gvisor,
        hashes_tell_whether_files_were_changed: bwrap podman docker gvisor,
        what_is_laid_to_be_read_stays_with_the_folders_above_it: bwrap podman docker gvisor,
        collected_files_come_back_through_memory: bwrap podman docker gvisor,
        every_sandbox_starts_afresh: bwrap podman docker,
    }
}
