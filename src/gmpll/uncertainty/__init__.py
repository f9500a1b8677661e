"""How sure a prediction is: calibration, reject option, prediction sets, reliability diagrams."""
