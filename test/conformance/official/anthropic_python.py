import anthropic
from anthropic import beta_tool
from cases import KEY, MODEL, TIMEOUT_S, URL, WEATHER, collect, run_cases, thrown, thrown_errors
from pydantic import BaseModel


class Answer(BaseModel):
    capital: str


def connect(key=KEY, **options):
    return anthropic.Anthropic(base_url=URL, api_key=key, max_retries=0, **options)


client = connect()


def ask_of(prompt, model=MODEL):
    return {"model": model, "max_tokens": 500, "messages": [{"role": "user", "content": prompt}]}


def chat(prompt):
    message = client.messages.create(**ask_of(prompt))
    return {"text": message.content[0].text, "input": message.usage.input_tokens, "output": message.usage.output_tokens}


def stream(prompt):
    with client.messages.stream(**ask_of(prompt)) as events:
        return collect(events.text_stream)


def tools(prompt):
    calls = []

    @beta_tool
    def weather(city: str) -> str:
        """The weather."""
        calls.append({"name": "weather", "arguments": {"city": city}})
        return WEATHER

    message = client.beta.messages.tool_runner(**ask_of(prompt), tools=[weather]).until_done()
    return {"text": message.content[0].text, "calls": calls}


def structured(prompt):
    return client.messages.parse(**ask_of(prompt), output_format=Answer).parsed_output.model_dump()


def errors(_prompt):
    return thrown_errors(lambda key, model, prompt: connect(key).messages.create(**ask_of(prompt, model)))


def abort(prompt):
    with client.messages.stream(**ask_of(prompt)) as events:
        for text in events.text_stream:
            return {"text": text}


def timeout(prompt):
    return thrown(lambda: connect(timeout=TIMEOUT_S).messages.create(**ask_of(prompt)))


def lists(_prompt):
    return {"models": [model.id for model in client.models.list(limit=2)]}


run_cases(
    {
        "chat": chat,
        "stream": stream,
        "tools": tools,
        "structured": structured,
        "errors": errors,
        "abort": abort,
        "timeout": timeout,
        "lists": lists,
    }
)
