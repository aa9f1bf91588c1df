from cases import EMBEDDING_MODEL, KEY, MODEL, TEXTS, TIMEOUT_S, URL, WEATHER, collect, run_cases, thrown, thrown_errors
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel


class Answer(BaseModel):
    capital: str


def weather(city: str) -> str:
    """The weather."""
    return WEATHER


def connect(key=KEY, model=MODEL, **options):
    settings = {"is_chat_model": True, "is_function_calling_model": True, "should_use_structured_outputs": True, "max_retries": 0}
    return OpenAILike(model=model, api_base=f"{URL}/v1", api_key=key, **{**settings, **options})


llm = connect()


def chat(prompt):
    answer = llm.complete(prompt)
    usage = answer.raw.usage
    return {"text": answer.text, "input": usage.prompt_tokens, "output": usage.completion_tokens}


def stream(prompt):
    return collect(piece.delta for piece in llm.stream_complete(prompt))


def tools(prompt):
    calls = []

    def recorded(city: str) -> str:
        calls.append({"name": "weather", "arguments": {"city": city}})
        return weather(city)

    tool = FunctionTool.from_defaults(recorded, name="weather", description="The weather")
    asked = llm.chat_with_tools([tool], user_msg=prompt)
    messages = [ChatMessage(role="user", content=prompt), asked.message]
    for call in llm.get_tool_calls_from_response(asked):
        result = str(tool(**call.tool_kwargs))
        messages.append(ChatMessage(role="tool", content=result, additional_kwargs={"tool_call_id": call.tool_id}))
    return {"text": llm.chat_with_tools([tool], chat_history=messages).message.content, "calls": calls}


def structured(prompt):
    return llm.as_structured_llm(Answer).complete(prompt).raw.model_dump()


def embeddings(_prompt):
    embedder = OpenAILikeEmbedding(model_name=EMBEDDING_MODEL, api_base=f"{URL}/v1", api_key=KEY, max_retries=0)
    return embedder.get_text_embedding_batch(TEXTS)


def errors(_prompt):
    return thrown_errors(lambda key, model, prompt: connect(key, model).complete(prompt))


def abort(prompt):
    pieces = llm.stream_complete(prompt)
    for piece in pieces:
        if piece.delta:
            pieces.close()
            return {"text": piece.delta}


def timeout(prompt):
    return thrown(lambda: connect(timeout=TIMEOUT_S).complete(prompt))


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
