//! OpenAI's responses.

use super::{Answer, Refusal, Script};
use serde_json::{Value, json};

pub(super) fn answer(script: &Script, body: &Value) -> Answer {
    let items = body["input"].as_array().into_iter().flatten();
    let done = items
        .filter(|item| item["type"] == "function_call_output")
        .count();
    match script {
        Script::Work(commands) => Answer::Events(match commands.get(done) {
            Some(command) => response(done, &call(done, command)),
            None => response(done, &said()),
        }),
        Script::WorkThen(commands, refusal) => match commands.get(done) {
            Some(command) => Answer::Events(response(done, &call(done, command))),
            None => refuse(*refusal),
        },
        Script::Hang(command) if done == 0 => Answer::Events(response(done, &call(done, command))),
        Script::Hang(_) => Answer::Nothing,
        Script::Die => Answer::Half(vec![response(done, &said()).remove(0)]),
        Script::Refuse(refusal) => refuse(*refusal),
    }
}

fn refuse(refusal: Refusal) -> Answer {
    let (status, error) = match refusal {
        Refusal::Limit(until) => (
            429,
            json!({"type": "usage_limit_reached", "message": "limit", "plan_type": "plus", "resets_at": until}),
        ),
        Refusal::Rate => (
            429,
            json!({"type": "requests", "code": "rate_limit_exceeded", "message": "Rate limit reached"}),
        ),
        Refusal::Overloaded => (
            503,
            json!({"type": "server_error", "code": "server_is_overloaded", "message": "overloaded"}),
        ),
        Refusal::Auth => (
            401,
            json!({"type": "invalid_request_error", "code": "invalid_api_key", "message": "Incorrect API key provided"}),
        ),
    };
    Answer::Plain(status, Vec::new(), json!({ "error": error }))
}

fn call(number: usize, command: &str) -> Value {
    json!({
        "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
        "name": "exec_command", "arguments": json!({"cmd": command}).to_string(),
    })
}

fn said() -> Value {
    json!({"type": "message", "id": "m1", "role": "assistant",
        "content": [{"type": "output_text", "text": "All done."}]})
}

fn response(number: usize, item: &Value) -> Vec<Value> {
    let id = format!("resp_{number}");
    vec![
        json!({"type": "response.created", "response": {"id": id}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": id, "usage": {
            "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 100},
            "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 5},
            "total_tokens": 1050,
        }}}),
    ]
}
