from cases import EMBEDDING_MODEL, KEY, MODEL, TEXTS, TIMEOUT_S, URL, WEATHER, collect, run_cases, thrown, thrown_errors
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel


class Answer(BaseModel):
    capital: str


@tool
def weather(city: str) -> str:
    """The weather."""
    return WEATHER


def connect(key=KEY, model=MODEL, **options):
    return ChatOpenAI(model=model, base_url=f"{URL}/v1", api_key=key, max_retries=0, **options)


model = connect()


def chat(prompt):
    message = model.invoke(prompt)
    usage = message.usage_metadata
    return {"text": message.text, "input": usage["input_tokens"], "output": usage["output_tokens"]}


def stream(prompt):
    return collect(str(chunk.text) for chunk in model.stream(prompt))


def tools(prompt):
    with_tools = model.bind_tools([weather])
    asked = with_tools.invoke([HumanMessage(prompt)])
    results = [weather.invoke(call) for call in asked.tool_calls]
    told = with_tools.invoke([HumanMessage(prompt), asked, *results])
    return {"text": told.text, "calls": [{"name": call["name"], "arguments": call["args"]} for call in asked.tool_calls]}


def structured(prompt):
    return model.with_structured_output(Answer).invoke(prompt).model_dump()


def embeddings(_prompt):
    return OpenAIEmbeddings(model=EMBEDDING_MODEL, base_url=f"{URL}/v1", api_key=KEY, max_retries=0).embed_documents(TEXTS)


def errors(_prompt):
    return thrown_errors(lambda key, name, prompt: connect(key, name).invoke(prompt))


def abort(prompt):
    chunks = model.stream(prompt)
    for chunk in chunks:
        if chunk.text:
            chunks.close()
            return {"text": str(chunk.text)}


def timeout(prompt):
    return thrown(lambda: connect(timeout=TIMEOUT_S).invoke(prompt))


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
    }
)
