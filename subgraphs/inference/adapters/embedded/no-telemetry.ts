// onnxruntime reads this variable when its library is loaded. Otherwise it stores a device id in the user's folder and
// sends events to its makers. The variable must be set in the process that starts the thread: native code does not see
// a thread's own environment.
process.env.ORT_DISABLE_TELEMETRY = '1'
