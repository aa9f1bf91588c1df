for (const all: unknown[] = []; ; ) all.push({ number: all.length })
