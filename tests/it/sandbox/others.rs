//! The same tests for the other providers: what works in them, and what must not.
//!
//! Where a provider is not named, it does that in another way; `docs/reference/sandboxes.md` says so.

use super::support::with;

/// One test of the embedded provider, tried with another one.
macro_rules! one {
    ($module:ident $test:ident bwrap) => {
        one!($module $test bwrap "heavy: needs bubblewrap");
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
        host_files_are_not_there: bwrap,
        host_sockets_are_out_of_reach_even_when_their_folder_is_bound: bwrap,
        privileges_are_gone_and_cannot_be_had: bwrap,
        a_set_user_id_program_gains_nothing: bwrap,
        the_supervisor_is_out_of_reach: bwrap gvisor,
        a_child_cannot_write_its_parents_memory: bwrap,
        without_the_inner_domain_the_supervisor_is_still_out_of_reach: bwrap gvisor,
        inherited_descriptors_are_closed: bwrap gvisor,
        a_crash_dumps_no_memory: bwrap,
        there_is_no_terminal: bwrap,
        what_is_not_ours_cannot_be_written: bwrap gvisor,
    }
    lifetime {
        survivors_die_with_their_step: bwrap gvisor,
        a_timeout_kills_everything: bwrap gvisor,
        an_interrupt_kills_everything: bwrap gvisor,
        nothing_is_left_when_hangar_is_killed: bwrap,
        nothing_is_left_when_the_launcher_is_killed: bwrap,
    }
    limits {
        a_memory_bomb_is_killed_at_the_bound: bwrap,
        a_fork_bomb_is_stopped_at_the_bound: bwrap gvisor,
        a_large_file_is_refused: bwrap gvisor,
        a_flood_ends_with_the_clock: bwrap gvisor,
        descriptors_are_bounded: bwrap gvisor,
    }
    network {
        nothing_but_loopback_is_there: bwrap,
        a_bridge_leads_to_a_socket_of_the_host_and_nowhere_else: bwrap,
        a_bridge_to_nobody_just_ends: bwrap,
    }
    probe {
        a_sandbox_is_measured_to_be_sealed: bwrap,
        a_limit_that_was_not_asked_for_is_not_claimed: bwrap,
        a_hole_in_the_specification_is_found: bwrap,
        a_kernel_of_its_own_is_measured: gvisor,
    }
    run {
        streams_and_status_come_back: bwrap gvisor,
        a_program_that_is_not_there_is_said_so: bwrap gvisor,
        the_environment_is_what_the_step_names_and_nothing_else: bwrap gvisor,
        the_machine_looks_neutral: bwrap gvisor,
        standard_input_and_the_channel_are_connected: bwrap gvisor,
        steps_share_files_but_no_processes: bwrap,
        the_rest_is_skipped_after_a_failure_when_asked: bwrap gvisor,
        a_deadline_bounds_all_steps_together: bwrap gvisor,
        lines_are_shown_as_they_come: bwrap gvisor,
        output_is_cut_at_its_bound_and_the_program_goes_on: bwrap gvisor,
        a_large_channel_is_read_to_its_end: bwrap gvisor,
        a_step_that_stands_still_is_ended: bwrap gvisor,
        the_provider_works_here_by_its_own_account: bwrap gvisor,
    }
    tree {
        a_read_only_mount_is_read_and_not_written: bwrap gvisor,
        a_single_file_can_be_mounted: bwrap gvisor,
        a_writable_mount_changes_the_host: bwrap gvisor,
        changes_of_a_scratch_mount_stay_in_memory: bwrap gvisor,
        where_the_kernel_refuses_an_overlay_a_scratch_mount_is_a_copy: bwrap,
        a_laid_file_replaces_what_stands_there_and_follows_nothing: bwrap gvisor,
        a_laid_file_is_refused_where_the_tree_bends_its_path: bwrap gvisor,
        a_laid_file_never_lands_on_the_host: bwrap gvisor,
        a_tree_decides_no_mount_point: bwrap gvisor,
        the_fixed_parts_cannot_be_replaced: bwrap gvisor,
        hashes_tell_whether_files_were_changed: bwrap gvisor,
        what_is_laid_to_be_read_stays_with_the_folders_above_it: bwrap gvisor,
        collected_files_come_back_through_memory: bwrap gvisor,
        every_sandbox_starts_afresh: bwrap,
    }
}
