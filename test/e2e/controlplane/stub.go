package main

func launchCases(*options) []testCase  { return nil }
func faultCases(*options) []testCase   { return nil }
func crashCases(*options) []testCase   { return nil }
func policyCases(*options) []testCase  { return nil }
func specialCases(*options) []testCase { return nil }
