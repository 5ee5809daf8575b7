/* Nothing is called: see StopAtStart.c. */
