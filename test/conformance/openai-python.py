"""Drives the service with the official OpenAI client for Python: a request a line on standard input, an answer a line on standard output."""

import json
import sys

import openai

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
client = openai.OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)


def request_of(ask):
    content = ask["text"]
    if "image" in ask:
        url = f"data:{ask['image']['mediaType']};base64,{ask['image']['base64']}"
        content = [{"type": "text", "text": content}, {"type": "image_url", "image_url": {"url": url}}]
    messages = [{"role": "user", "content": content}]
    if "after" in ask:
        calls = ask["after"]["calls"]
        functions = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}
            for call in calls
        ]
        messages.append({"role": "assistant", "tool_calls": functions})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": ask["after"]["result"]} for call in calls]
    request = {"model": ask["model"], "messages": messages}
    if "tools" in ask:
        # The streaming helper takes strict tools only.
        request["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": PARAMETERS, "strict": True}} for name in ask["tools"]
        ]
    if "schema" in ask:
        request["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": ask["schema"]},
        }
    return request


def understood(completion):
    choice, usage = completion.choices[0], completion.usage
    calls = [
        {"id": call.id, "name": call.function.name, "arguments": json.loads(call.function.arguments)}
        for call in choice.message.tool_calls or []
    ]
    details = usage.prompt_tokens_details if usage else None
    return {
        "text": choice.message.content or "",
        "calls": calls,
        "ended": "tools" if choice.finish_reason == "tool_calls" else choice.finish_reason,
        "usage": usage
        and {
            "prompt": usage.prompt_tokens,
            "cached": (details.cached_tokens if details else 0) or 0,
            "completion": usage.completion_tokens,
        },
    }


def answer(ask):
    return understood(client.chat.completions.create(**request_of(ask)))


def stream(ask):
    with client.chat.completions.stream(**request_of(ask), stream_options={"include_usage": True}) as events:
        return understood(events.get_final_completion())


def texts(ask):
    for chunk in client.chat.completions.create(**request_of(ask), stream=True):
        yield (chunk.choices[0].delta.content if chunk.choices else None) or ""


def failure(ask, is_stream):
    text = ""
    try:
        if is_stream:
            for piece in texts(ask):
                text += piece
        else:
            answer(ask)
    except openai.APIStatusError as error:
        return {"status": error.status_code, "word": error.code, "requestId": error.request_id, "text": text}
    except openai.APIError as error:
        return {"status": None, "word": error.code, "requestId": None, "text": text}
    raise RuntimeError("the request succeeded")


def leave(ask):
    with client.chat.completions.create(**request_of(ask), stream=True) as chunks:
        for chunk in chunks:
            if chunk.choices and chunk.choices[0].delta.content:
                return None


OPERATIONS = {"answer": answer, "stream": stream, "failure": failure, "leave": leave}

print(json.dumps({"version": openai.__version__}), flush=True)
for line in sys.stdin:
    operation, arguments = json.loads(line)
    try:
        result = {"value": OPERATIONS[operation](*arguments)}
    except Exception as error:  # The test says what is wrong with it.
        result = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), flush=True)
