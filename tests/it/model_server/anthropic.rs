//! Anthropic's messages.

use super::{Answer, Refusal, Request, Script};
use serde_json::{Value, json};

pub(super) fn answer(script: &Script, request: &Request) -> Answer {
    let body = &request.body;
    let parts = || {
        let messages = body["messages"].as_array().into_iter().flatten();
        messages.flat_map(|message| message["content"].as_array().into_iter().flatten())
    };
    let done = parts().filter(|part| part["type"] == "tool_result").count();
    match script {
        Script::Work(commands) => Answer::Events(match commands.get(done) {
            Some(command) => message(body, &tool(done, command), "tool_use"),
            None => message(body, &text("All done."), "end_turn"),
        }),
        Script::WorkThen(commands, refusal) => match commands.get(done) {
            Some(command) => Answer::Events(message(body, &tool(done, command), "tool_use")),
            None => refuse(*refusal),
        },
        Script::Hang(command) if done == 0 => {
            Answer::Events(message(body, &tool(done, command), "tool_use"))
        }
        Script::Hang(_) => Answer::Nothing,
        Script::Die => {
            let mut events = message(body, &text("Half a sen"), "end_turn");
            events.truncate(3);
            Answer::Half(events)
        }
        Script::Refuse(refusal) => refuse(*refusal),
    }
}

fn refuse(refusal: Refusal) -> Answer {
    let (status, kind, text) = match refusal {
        Refusal::Limit(_) | Refusal::Rate => (
            429,
            "rate_limit_error",
            "This request would exceed your rate limit",
        ),
        Refusal::Overloaded => (529, "overloaded_error", "Overloaded"),
        Refusal::Auth => (401, "authentication_error", "invalid x-api-key"),
    };
    let headers = match refusal {
        Refusal::Limit(until) => vec![
            ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
            ("anthropic-ratelimit-unified-reset", until.to_string()),
            (
                "anthropic-ratelimit-unified-representative-claim",
                "five_hour".to_owned(),
            ),
        ],
        Refusal::Rate | Refusal::Overloaded => vec![("retry-after", "1".to_owned())],
        Refusal::Auth => Vec::new(),
    };
    let body = json!({"type": "error", "error": {"type": kind, "message": text}});
    Answer::Plain(status, headers, body)
}

/// A block with what comes of it in pieces.
type Block = (Value, Value);

fn tool(number: usize, command: &str) -> Block {
    let input = json!({"command": command, "description": "a step"}).to_string();
    (
        json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": "Bash", "input": {}}),
        json!({"type": "input_json_delta", "partial_json": input}),
    )
}

fn text(text: &str) -> Block {
    (
        json!({"type": "text", "text": ""}),
        json!({"type": "text_delta", "text": text}),
    )
}

fn message(request: &Value, (block, delta): &Block, stop: &str) -> Vec<Value> {
    vec![
        json!({"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": request["model"],
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 1000, "output_tokens": 1},
        }}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": 50}}),
        json!({"type": "message_stop"}),
    ]
}
