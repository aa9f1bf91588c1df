// onnxruntime reads this when its library is loaded; without it, it keeps a device id in the user's folder and sends events to its makers.
// In the process that starts the thread: what a thread sets in its environment native code does not see.
process.env.ORT_DISABLE_TELEMETRY = '1'
