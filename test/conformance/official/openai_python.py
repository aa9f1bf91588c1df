import json

import openai
from cases import EMBEDDING_MODEL, KEY, MODEL, TEXTS, TIMEOUT_S, URL, WEATHER, collect, run_cases, thrown, thrown_errors
from pydantic import BaseModel


class Answer(BaseModel):
    capital: str


def connect(key=KEY, **options):
    return openai.OpenAI(base_url=f"{URL}/v1", api_key=key, max_retries=0, **options)


client = connect()


def ask_of(prompt, model=MODEL):
    return {"model": model, "messages": [{"role": "user", "content": prompt}]}


def chat(prompt):
    completion = client.chat.completions.create(**ask_of(prompt))
    usage = completion.usage
    return {"text": completion.choices[0].message.content, "input": usage.prompt_tokens, "output": usage.completion_tokens}


def stream(prompt):
    with client.chat.completions.stream(**ask_of(prompt)) as events:
        return collect(event.delta for event in events if event.type == "content.delta")


def tools(prompt):
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
    ask = ask_of(prompt)
    ask["tools"] = [{"type": "function", "function": {"name": "weather", "parameters": parameters, "strict": True}}]
    message = client.chat.completions.create(**ask).choices[0].message
    results = [{"role": "tool", "tool_call_id": call.id, "content": WEATHER} for call in message.tool_calls]
    ask["messages"] += [message, *results]
    text = client.chat.completions.create(**ask).choices[0].message.content
    calls = [{"name": call.function.name, "arguments": json.loads(call.function.arguments)} for call in message.tool_calls]
    return {"text": text, "calls": calls}


def structured(prompt):
    return client.chat.completions.parse(**ask_of(prompt), response_format=Answer).choices[0].message.parsed.model_dump()


def embeddings(_prompt):
    return [item.embedding for item in client.embeddings.create(model=EMBEDDING_MODEL, input=TEXTS).data]


def errors(_prompt):
    return thrown_errors(lambda key, model, prompt: connect(key).chat.completions.create(**ask_of(prompt, model)))


def abort(prompt):
    with client.chat.completions.create(**ask_of(prompt), stream=True) as chunks:
        for chunk in chunks:
            if chunk.choices and chunk.choices[0].delta.content:
                return {"text": chunk.choices[0].delta.content}


def timeout(prompt):
    return thrown(lambda: connect(timeout=TIMEOUT_S).chat.completions.create(**ask_of(prompt)))


def lists(_prompt):
    models = [model.id for model in client.models.list()]
    names = ["a.txt", "b.txt", "c.txt"]
    uploaded = [client.files.create(file=(name, name.encode()), purpose="assistants").id for name in names]
    return {"models": models, "uploaded": uploaded, "files": [file.id for file in client.files.list(limit=2)]}


run_cases(
    {
        "chat": chat,
        "stream": stream,
        "tools": tools,
        "structured": structured,
        "embeddings": embeddings,
        "errors": errors,
        "abort": abort,
        "timeout": timeout,
        "lists": lists,
    }
)
