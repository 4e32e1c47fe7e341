//! The same tests for the other providers: what works in them, and what must not.
//!
//! What is left out is what a provider does in another way; `docs/reference/sandboxes.md` says so.

use super::support::with;

/// Tests of the embedded provider that hold for another one, too.
macro_rules! hold_too {
    ($provider:literal, $reason:literal: $($module:ident { $($name:ident),* $(,)? })*) => {
        $(mod $module {
            $(
                #[test]
                #[ignore = $reason]
                fn $name() {
                    super::super::with($provider, super::super::super::$module::$name);
                }
            )*
        })*
    };
}

mod bwrap {
    hold_too! { "bwrap", "heavy: needs bubblewrap":
        escape {
            host_files_are_not_there,
            host_sockets_are_out_of_reach_even_when_their_folder_is_bound,
            privileges_are_gone_and_cannot_be_had,
            a_set_user_id_program_gains_nothing,
            the_supervisor_is_out_of_reach,
            a_child_cannot_write_its_parents_memory,
            without_the_inner_domain_the_supervisor_is_still_out_of_reach,
            inherited_descriptors_are_closed,
            a_crash_dumps_no_memory,
            there_is_no_terminal,
            what_is_not_ours_cannot_be_written,
        }
        lifetime {
            survivors_die_with_their_step,
            a_timeout_kills_everything,
            an_interrupt_kills_everything,
            nothing_is_left_when_hangar_is_killed,
            nothing_is_left_when_the_launcher_is_killed,
        }
        limits {
            a_memory_bomb_is_killed_at_the_bound,
            a_fork_bomb_is_stopped_at_the_bound,
            a_large_file_is_refused,
            a_flood_ends_with_the_clock,
            descriptors_are_bounded,
        }
        network {
            nothing_but_loopback_is_there,
            a_bridge_leads_to_a_socket_of_the_host_and_nowhere_else,
            a_bridge_to_nobody_just_ends,
        }
        probe {
            a_sandbox_is_measured_to_be_sealed,
            a_limit_that_was_not_asked_for_is_not_claimed,
            a_hole_in_the_specification_is_found,
        }
        run {
            streams_and_status_come_back,
            a_program_that_is_not_there_is_said_so,
            the_environment_is_what_the_step_names_and_nothing_else,
            the_machine_looks_neutral,
            standard_input_and_the_channel_are_connected,
            steps_share_files_but_no_processes,
            the_rest_is_skipped_after_a_failure_when_asked,
            a_deadline_bounds_all_steps_together,
            lines_are_shown_as_they_come,
            output_is_cut_at_its_bound_and_the_program_goes_on,
            a_large_channel_is_read_to_its_end,
            a_step_that_stands_still_is_ended,
            the_provider_works_here_by_its_own_account,
        }
        tree {
            a_read_only_mount_is_read_and_not_written,
            a_single_file_can_be_mounted,
            a_writable_mount_changes_the_host,
            changes_of_a_scratch_mount_stay_in_memory,
            where_the_kernel_refuses_an_overlay_a_scratch_mount_is_a_copy,
            a_laid_file_replaces_what_stands_there_and_follows_nothing,
            a_laid_file_is_refused_where_the_tree_bends_its_path,
            a_laid_file_never_lands_on_the_host,
            a_tree_decides_no_mount_point,
            the_fixed_parts_cannot_be_replaced,
            hashes_tell_whether_files_were_changed,
            what_is_laid_to_be_read_stays_with_the_folders_above_it,
            collected_files_come_back_through_memory,
            every_sandbox_starts_afresh,
        }
    }
}

mod gvisor {
    hold_too! { "gvisor", "heavy: needs runsc":
        escape {
            the_supervisor_is_out_of_reach,
            without_the_inner_domain_the_supervisor_is_still_out_of_reach,
            inherited_descriptors_are_closed,
            what_is_not_ours_cannot_be_written,
        }
        lifetime {
            survivors_die_with_their_step,
            a_timeout_kills_everything,
            an_interrupt_kills_everything,
        }
        limits {
            a_fork_bomb_is_stopped_at_the_bound,
            a_large_file_is_refused,
            a_flood_ends_with_the_clock,
            descriptors_are_bounded,
        }
        probe {
            a_kernel_of_its_own_is_measured,
        }
        run {
            streams_and_status_come_back,
            a_program_that_is_not_there_is_said_so,
            the_environment_is_what_the_step_names_and_nothing_else,
            the_machine_looks_neutral,
            standard_input_and_the_channel_are_connected,
            the_rest_is_skipped_after_a_failure_when_asked,
            a_deadline_bounds_all_steps_together,
            lines_are_shown_as_they_come,
            output_is_cut_at_its_bound_and_the_program_goes_on,
            a_large_channel_is_read_to_its_end,
            a_step_that_stands_still_is_ended,
            the_provider_works_here_by_its_own_account,
        }
        tree {
            a_read_only_mount_is_read_and_not_written,
            a_single_file_can_be_mounted,
            a_writable_mount_changes_the_host,
            changes_of_a_scratch_mount_stay_in_memory,
            a_laid_file_replaces_what_stands_there_and_follows_nothing,
            a_laid_file_is_refused_where_the_tree_bends_its_path,
            a_laid_file_never_lands_on_the_host,
            a_tree_decides_no_mount_point,
            the_fixed_parts_cannot_be_replaced,
            hashes_tell_whether_files_were_changed,
            what_is_laid_to_be_read_stays_with_the_folders_above_it,
            collected_files_come_back_through_memory,
        }
    }
}
