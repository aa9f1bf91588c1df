"""Streams the answer of an agent, then prints its citations: python3 chat.py CODE QUESTION"""

import os
import sys

from openai import OpenAI

if len(sys.argv) != 3:
    sys.exit(__doc__)
code, question = sys.argv[1:]
client = OpenAI(base_url=os.environ.get("KIS_URL", "http://127.0.0.1:4000") + "/v1", api_key=os.environ["KIS_API_KEY"])
messages = [{"role": "user", "content": question}]
citations = []
for chunk in client.chat.completions.create(model=f"agent/{code}", messages=messages, stream=True):
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
        # The last delta has one for each mark of the answer, such as [#1]. The package's types do not know the field.
        citations += getattr(choice.delta, "annotations", None) or []
print()
for citation in citations:
    cited = citation["file_citation"]
    page = f", page {cited['page_start']}" if cited["page_start"] else ""
    print(f"- {cited['filename']}{page}: {' '.join(cited['text'].split())}")
